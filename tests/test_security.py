"""Bad input: files are private, links are refused, what is too long is refused, and what is read is data."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onestart import (
    BadCommandError,
    CannotTellError,
    Chain,
    Command,
    FencedError,
    LedgerUnavailableError,
    NothingToDoError,
    Order,
    Outcome,
    Reason,
)
from onestart.eventlog import EventLogError, read_events
from onestart.health import Health
from onestart.jsonl import JsonlLedger
from onestart.jsonl.ledger import inspect
from onestart.jsonl.verify import verify
from onestart.launches import AlreadyLaunchedError, Launches
from onestart.lines import LONGEST, TooLongError, decode, embedded, encode, outline, overrun, unsealed
from onestart.memory import MemoryLedger
from onestart.ports import Ledger, NotALedgerError
from onestart.records import STORES, Attempt, Receipt, Record, Step
from onestart.sql.sqlite import SqliteLedger
from onestart_conformance.damage.forgery import summed
from onestart_conformance.damage.jsonl import DiskMedium
from onestart_conformance.damage.prepared import Prepared, prepared, subject_of
from onestart_conformance.damage.site import Site
from onestart_conformance.doubles import Engine, PromptExecutor, unheard
from onestart_model.chain import CHAIN
from onestart_model.counterexample import CounterexampleError
from onestart_model.counterexample import load as load_counterexample

ROOT = Path(__file__).parent.parent


def put(ledger: Ledger, *records: Record) -> None:
    async def each() -> None:
        for record in records:
            await ledger.step(lambda _, record=record: (record, None))  # type: ignore[misc]

    asyncio.run(each())


def receipt(key: str = "k") -> Receipt:
    return Receipt(key, "t", "pending", "f")


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def _any_umask() -> Any:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_any_umask")
def test_what_is_made_is_its_owners_alone(tmp_path: Path) -> None:
    """Folders 0700, files 0600, whatever the umask allows."""
    put(JsonlLedger(tmp_path / "a" / "files"), receipt())
    put(SqliteLedger(tmp_path / "b" / "file.db"), receipt())
    Launches(tmp_path / "c" / "launches").launch(Order("k", "t", 1), lambda _: os.getpid())
    for made in (path for folder in ("a", "b", "c") for path in (tmp_path / folder, *(tmp_path / folder).rglob("*"))):
        assert stat.S_IMODE(made.stat().st_mode) == (0o700 if made.is_dir() else 0o600), made


@pytest.mark.parametrize("name", ["ledger.json", "lock", *(f"{store}.jsonl" for store in ("receipts", "flows"))])
@pytest.mark.parametrize("there", [True, False])
def test_links_in_a_ledger_are_refused(tmp_path: Path, name: str, there: bool) -> None:
    """One line says so, and what the link leads to is neither read nor written nor made."""
    folder, target = tmp_path / "ledger", tmp_path / "target"
    put(JsonlLedger(folder), receipt())
    if there:
        (folder / name).rename(target) if (folder / name).exists() else target.touch()
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(target)
    before = target.read_bytes() if there else None
    with pytest.raises(LedgerUnavailableError, match=f"{name} is a symbolic link"):
        put(JsonlLedger(folder), receipt("other"))
    assert (target.read_bytes() if target.exists() else None) == before


def test_a_folder_may_be_reached_by_a_link(tmp_path: Path) -> None:
    """Where a user keeps folders is the user's business."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    put(JsonlLedger(tmp_path / "link"), receipt())
    put(JsonlLedger(tmp_path / "link" / "inner"), receipt())
    assert (tmp_path / "real" / "inner" / "receipts.jsonl").is_file()


def test_a_link_in_the_place_of_a_launch_is_not_followed(tmp_path: Path) -> None:
    """It says nothing of whether the key was launched."""
    target, launches = tmp_path / "target", Launches(tmp_path / "launches")
    launches.name()
    digest = sha256(b"k").hexdigest()
    (tmp_path / "launches" / f"{digest}.launch").symlink_to(target)
    with pytest.raises(CannotTellError):
        launches.running("k")
    with pytest.raises((AlreadyLaunchedError, CannotTellError)):
        launches.launch(Order("k", "t", 1), lambda _: os.getpid())
    (tmp_path / "launches" / f"{sha256(b'u').hexdigest()[:2]}.lock").symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        launches.launch(Order("j", "u", 1), lambda _: os.getpid())
    assert not target.exists()


@pytest.mark.parametrize("key", ["../../outside", "/etc/passwd", "a/b", ".", "nul\u00b7", "x" * 512])
def test_a_key_is_no_file_name(tmp_path: Path, key: str) -> None:
    """It is hashed where it names a file, and quoted where it stands in one."""
    folder = tmp_path / "inner" / "launches"
    Launches(folder).launch(Order(key, key, 1), lambda _: os.getpid())
    put(JsonlLedger(tmp_path / "inner" / "ledger"), receipt(key))
    names = {path.name for path in tmp_path.rglob("*")}
    assert all(name.split(".")[0].isalnum() for name in names)
    assert {path.name for path in tmp_path.iterdir()} == {"inner"}
    assert {path.name for path in (tmp_path / "inner").iterdir()} == {"launches", "ledger"}


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda p: JsonlLedger(p / "l"), lambda p: SqliteLedger(p / "l.db")])
def test_a_record_that_no_line_can_hold_is_refused_alone(tmp_path: Path, make: Callable[[Path], Ledger]) -> None:
    """Nothing of it is recorded, and steps that share its turn are."""
    ledger = make(tmp_path)
    long = Step("root", "flow:root", "done", "s", 1, {"result": "x" * LONGEST})

    async def together() -> list[object]:
        steps = [ledger.step(lambda _, r=r: (r, r.key)) for r in (receipt("a"), long, receipt("b"))]  # type: ignore[misc]
        return list(await asyncio.gather(*steps, return_exceptions=True))

    first, second, third = asyncio.run(together())
    assert (first, third) == ("a", "b")
    assert isinstance(second, TooLongError)
    assert "pass a reference" in str(second)
    counts = asyncio.run(make(tmp_path).step(lambda view: (None, (view.order, view.steps("root").count))))
    assert counts == (2, 0)


def test_a_line_that_is_too_long_is_corrupt_and_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose it was, its head tells."""
    line = encode(Step("root", "flow:root", "done", "s", 1, {"result": "x" * LONGEST}), 7, None, {})[:-1]
    monkeypatch.setattr("onestart.lines._record", pytest.fail)
    monkeypatch.setattr("onestart.lines._sum", lambda data: pytest.fail("it is hashed") if len(data) > LONGEST else b"")
    for read in (decode, outline):
        found = read(line)
        assert (found.health, found.seq, found.key) == (Health.CORRUPT, 7, "root")
    assert decode(b'["onestart",2,' + b"1," * LONGEST + b"1]").health is Health.CORRUPT
    assert list(embedded(b"x" * LONGEST + line)) == []


@pytest.mark.parametrize("depth", [101, 100_000])
def test_what_is_nested_too_deep_is_refused_and_never_read(depth: int) -> None:
    """By a submission before anything is recorded, and by a reader as damage."""
    payload: Any = 1
    for _ in range(depth if depth < 1000 else 0):
        payload = [payload]
    if depth < 1000:
        with pytest.raises(BadCommandError, match="nested"):
            Command(key="k", task="t", function="f", payload=payload)
    line = encode(receipt(), 1, None, {})
    deep = summed(line.replace(b'"command":null', b'"command":{"payload":' + b"[" * depth + b"]" * depth + b"}"))
    found = decode(deep[:-1])
    assert found.health in (Health.CORRUPT, Health.INTACT)
    if found.health is Health.CORRUPT:
        assert found.key == "k"


def test_an_operators_words_are_short(tmp_path: Path) -> None:
    """A reason is kept on record, so that it has a limit like everything there."""
    chain = Chain(ledger=MemoryLedger([receipt()]), executor=PromptExecutor(Engine(unheard)))
    with pytest.raises(BadCommandError, match="4096"):
        asyncio.run(chain.settle("k", by="anna", why="x" * 5000))


# --- what is read is data ---------------------------------------------------------------------------------------------

FORBIDDEN = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle", "yaml"}
CALLED = {"eval", "exec", "compile", "__import__"}


@pytest.mark.parametrize("room", ["impl", "model", "conformance", "proofs", "report", "check"])
def test_nothing_that_is_read_is_executed(room: str) -> None:
    """No pickle, no eval, no shell. A flow's own module is run because its user has named it."""
    for path in sorted((ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"{path}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name.split(".")[0] for alias in node.names} | {
                    (getattr(node, "module", "") or "").split(".")[0]
                }
                assert not names & FORBIDDEN, where
            if isinstance(node, ast.Call):
                assert not (isinstance(node.func, ast.Name) and node.func.id in CALLED), where
                assert not (isinstance(node.func, ast.Attribute) and node.func.attr in ("system", "popen")), where
                assert not any(k.arg == "shell" and getattr(k.value, "value", True) for k in node.keywords), where


@given(st.binary(max_size=300) | st.binary(max_size=60).map(lambda b: b'["onestart",1,1,"receipt","k","t",null,' + b))
def test_any_bytes_are_lines(raw: bytes) -> None:
    """With a health, and with nothing raised."""
    assert isinstance(decode(raw).health, Health)
    list(embedded(raw))
    overrun(raw)
    unsealed(raw)


@given(st.binary(max_size=80) | st.just(b'{"format":"onestart-ledger","version":') | st.just(b"[" * 5000))
def test_any_bytes_are_a_marker_or_none(raw: bytes) -> None:
    medium = DiskMedium()
    medium.disk.new(f"{medium.path}/ledger.json").data += raw
    medium.disk.new(f"{medium.path}/receipts.jsonl")
    with suppress(NotALedgerError):
        inspect(medium.files(), medium.path)


@given(st.dictionaries(st.sampled_from(list(STORES)), st.binary(max_size=200), max_size=3))
def test_any_bytes_are_a_ledger(data: dict[str, bytes]) -> None:
    """It is verified, read, recovered and written to."""
    medium = DiskMedium()
    site = Site(medium.ledger(), PromptExecutor(Engine(unheard)))
    site.submit(Command(key="first", task="t", function="f"))
    for store, more in data.items():
        medium.write(store, medium.data(store) + more)
    verify(medium.path, medium.files())
    site.ledger = medium.ledger()
    site.run(site.chain().recover())
    assert site.submit(Command(key="second", task="another's", function="f")).outcome == Outcome.STARTED
    assert site.starts["first"] == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def medium() -> DiskMedium:
    return DiskMedium()


@pytest.fixture(scope="module")
def ledger(medium: DiskMedium) -> Prepared:
    return prepared(medium)


@given(st.data())
def test_any_body_with_a_right_checksum_is_data(ledger: Prepared, medium: DiskMedium, data: st.DataObject) -> None:
    """A stranger's record may say anything: what raises is what a caller is told to expect."""
    store = data.draw(st.sampled_from(list(STORES)))
    original = data.draw(st.sampled_from(ledger.records[store]))
    body = json.loads(original.raw[outline(original.raw[:-1]).body : -21])
    for name in data.draw(st.lists(st.sampled_from(sorted(body)), min_size=1, max_size=2)):
        body[name] = data.draw(JSON if not isinstance(body[name], str) else JSON | st.sampled_from(REASONS))
    if isinstance(body.get("command"), dict) and data.draw(st.booleans()):
        body["command"] |= data.draw(
            st.dictionaries(st.sampled_from(["key", "task", "more", "round"]), JSON, max_size=2)
        )
    text = json.dumps(body, separators=(",", ":")).encode()
    medium.restore(ledger.kept)
    at = outline(original.raw[:-1]).body
    medium.replace(store, original.number, summed(original.raw[:at] + text + original.raw[-21:]))
    site = ledger.site(medium)
    chain = site.chain()
    site.run(chain.recover())
    key = subject_of(original.line)
    site.resume("another")
    for call in (chain.cancel(key), chain.reconcile(key), chain.status(key), chain.settle(key, by="a", why="b")):
        try:
            site.run(call)
        except (NothingToDoError, BadCommandError, LedgerUnavailableError):
            continue


GIVEN = Command(key="k", task="t", function="f")


@pytest.mark.parametrize(
    "more",
    [
        {"round": -1},
        {"unknown": 1},
        {"payload": float("inf")},
        {"key": "somebody else's"},
        {"payload": "another"},
        {"actor": "mallory"},
    ],
)
def test_a_command_on_record_that_is_not_the_keys_is_damage(more: dict[str, Any]) -> None:
    """It is never submitted, least of all under another key."""
    pending = Receipt("k", "t", "pending", GIVEN.fingerprint, GIVEN.to_json() | more)
    executor = PromptExecutor(Engine(unheard))
    chain = Chain(ledger=MemoryLedger([pending]), executor=executor)
    answers = asyncio.run(chain.recover())
    assert [(answer.outcome, answer.reason) for answer in answers] == [(Outcome.HELD, Reason.COMMAND_DAMAGED)]
    assert executor.engine.starts == {}
    assert asyncio.run(chain.submit(GIVEN)).outcome == Outcome.STARTED


@pytest.mark.parametrize("call", ["submit", "cancel"])
def test_a_reason_of_a_later_release_is_no_mistake(call: str) -> None:
    """The command is closed all the same."""
    pending = Receipt("k", "t", "pending", GIVEN.fingerprint, GIVEN.to_json())
    closed = Attempt("k", "t", "closed", GIVEN.fingerprint, reason="a_reason_of_a_later_release")
    chain = Chain(ledger=MemoryLedger([pending, closed]), executor=PromptExecutor(Engine(unheard)))
    answer = asyncio.run(chain.submit(GIVEN) if call == "submit" else chain.cancel("k"))
    assert (answer.outcome, answer.reason) == (Outcome.CLOSED, Reason.CANCELLED)


@pytest.mark.parametrize("token", ["7", None, 1.5, True, [7]])
def test_a_barrier_that_is_no_number_bars_everything(tmp_path: Path, token: object) -> None:
    """Nobody knows which launches it is to bar."""
    launches = Launches(tmp_path)
    launches.bar("k", "t", 2)
    raw = json.dumps({"record": "barrier", "version": 1, "task": "t", "token": token}).encode()
    (tmp_path / f"{sha256(b't').hexdigest()}.barrier").write_bytes(
        sha256(raw).hexdigest()[:16].encode() + b" " + raw + b"\n"
    )
    with pytest.raises(CannotTellError):
        launches.launch(Order("k", "t", 9), lambda _: os.getpid())


REASONS = ["task_cancelled", "a_reason_of_a_later_release", "offered", "closed", "ended", "live"]


@pytest.mark.parametrize("pid", [0, 1, -1, 2**31, 2**70, "7", True])
def test_no_number_of_a_process_is_taken_that_none_has(tmp_path: Path, pid: object) -> None:
    """Whoever can write a file could else have a signal sent to everybody."""
    launches = Launches(tmp_path)
    launches.launch(Order("k", "t", 1), lambda _: os.getpid())
    found = launches.process("k")
    assert found is not None
    raw = json.dumps({"record": "begun", **found.to_json(), "pid": pid}).encode()
    with open(tmp_path / f"{sha256(b'k').hexdigest()}.launch", "ab") as file:
        file.write(sha256(raw).hexdigest()[:16].encode() + b" " + raw + b"\n")
    found = Launches(tmp_path).process("k")
    assert found is None or found.pid == os.getpid()


@given(st.binary(max_size=80), st.sampled_from(["launch", "barrier", "ready"]), st.booleans(), st.data())
def test_any_bytes_are_launches(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes, kind: str, right: bool, data: st.DataObject
) -> None:
    """Of which this is known, or CannotTellError says that it is not."""
    folder = tmp_path_factory.mktemp("launches")
    launches = Launches(folder)
    launches.launch(Order("k", "t", 1), lambda _: os.getpid())
    launches.bar("k", "t", 2)
    if right:  # a line whose checksum is right, of whatever shape
        fields = st.sampled_from(["record", "version", "pid", "started", "among", "status", "token", "name", "task"])
        values = JSON | st.sampled_from(["begun", "ended", "barrier", "memory"])
        raw = json.dumps(data.draw(st.dictionaries(fields, values, max_size=4))).encode()
        raw = sha256(raw).hexdigest()[:16].encode() + b" " + raw + b"\n"
    name = "ready" if kind == "ready" else f"{sha256(b'k' if kind == 'launch' else b't').hexdigest()}.{kind}"
    path = folder / name
    path.write_bytes((path.read_bytes() if kind == "launch" else b"") + raw)
    again = Launches(folder)
    calls: list[Callable[[], object]] = [
        again.name,
        lambda: again.bar("k", "t", 3),
        lambda: again.running("k"),
        lambda: again.outcome("k"),
        lambda: again.process("k"),
        lambda: again.launch(Order("j", "t", 4), lambda _: os.getpid()),
    ]
    for call in calls:
        try:
            call()
        except (CannotTellError, FencedError):
            continue


@given(st.binary(max_size=120) | JSON.map(lambda value: json.dumps(value).encode()), st.booleans())
def test_any_bytes_are_an_event_log(tmp_path_factory: pytest.TempPathFactory, raw: bytes, headed: bool) -> None:
    path = tmp_path_factory.mktemp("logs") / "log"
    head = b'{"format":"onestart-events","version":1,"process":"p"}\n'
    path.write_bytes(head + raw if headed else raw)
    with suppress(EventLogError):
        list(read_events(path))


@given(st.binary(max_size=60) | st.dictionaries(st.sampled_from(["#meta", "states", "vars"]), JSON, max_size=3), JSON)
def test_any_bytes_are_a_counterexample_or_none(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes | dict[str, Any], value: Any
) -> None:
    path = tmp_path_factory.mktemp("traces") / "trace.itf.json"
    if isinstance(raw, dict):
        meta = {"format": "onestart-counterexample", "version": 1, "model": "chain", "sizes": value}
        raw = json.dumps({**raw, "#meta": meta}).encode()
    path.write_bytes(raw)
    with pytest.raises(CounterexampleError):
        load_counterexample(path, [CHAIN])
