"""What an executor remembers of its starts: on disk, shared by all processes of a machine, readable after any crash.

A key has one file. Its first line, the mark, appears whole or not at all and is durable before anything is started, so
a crash in between counts as a start: a start is the executor's acceptance. Later lines say who was started and how it
ended. The file is locked by whoever executes the key, which tells the living from the dead where no number does.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any, TypeAlias

from attrs import frozen

from onestart.command import escaped
from onestart.ports import CannotTellError, FencedError, Order
from onestart.processes import Identity

VERSION = 1
READY = "ready"
_SHAPES: Mapping[str, Mapping[str, type]] = {
    "begun": {"pid": int, "started": str, "among": str},
    "ended": {"status": int},
}
_MOST_PID = 1 << 31

Begin: TypeAlias = Callable[[int], int]
"""Starts it, and returns the number of the process that executes it. Gets a file descriptor that whoever executes it
keeps open, if it can."""


class AlreadyLaunchedError(Exception):
    """The key was launched before, so it is not launched again."""


@frozen
class Mark:
    """What is known of a launched key. legible: whether all that was written after the mark can be read."""

    begun: Identity | None = None
    status: int | None = None
    legible: bool = True


class Launches:
    """The launches of one executor, in a folder of their own. Nothing in it is ever deleted.

    All methods may be called from any thread and from several processes, and wait for the disk.
    """

    waits = True

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = os.fspath(folder)
        self._open: dict[str, int] = {}  # descriptors of what this process waits for; each holds its file's lock
        self._unwritten: dict[str, int] = {}  # ends that could not be recorded

    def name(self) -> str:
        """What tells this memory from every other one; a folder that was deleted and made anew has another name."""
        self._prepare()
        data = _bytes(f"{self._folder}/{READY}") or b""
        body = _body(data.removesuffix(b"\n"))
        if body is None or body.get("record") != "memory" or not isinstance(body.get("name"), str):
            raise CannotTellError(f"{self._folder}/{READY}: whose launches these are cannot be read")
        return str(body["name"])

    def launch(self, order: Order, begin: Begin) -> None:
        """Mark the key as launched, durably, then begin.

        Raises FencedError, AlreadyLaunchedError or CannotTellError without a mark; whatever begin raises, with one.
        """
        with self._turn(order.task):
            if self._barrier(order.task) > order.token:
                raise FencedError(f"the task has been looked up under a newer token than {order.token}")
            descriptor = self._mark(order)
            try:
                identity = Identity.of(begin(descriptor))
            except BaseException:
                os.close(descriptor)
                raise
            self._open[order.key] = descriptor
            with suppress(OSError):  # it has begun whether or not this can be written; the lock tells as well
                # Not synced: after a power failure the process is gone, and its number means nothing.
                _append(descriptor, {"record": "begun", **identity.to_json()})

    def bar(self, key: str, task: str, token: int) -> bool:
        """Whether the key was ever launched; from then on launches of the task under older tokens are refused.

        Raises FencedError if that has been asked under a newer token, CannotTellError if it is not known.
        """
        with self._turn(task):
            launched = self._read(key) is not None
            barrier = self._barrier(task)
            if barrier > token:
                raise FencedError(f"the task has been looked up under a newer token than {token}")
            if barrier < token:
                body = {"record": "barrier", "version": VERSION, "task": task, "token": token}
                self._publish(self._path(task, "barrier"), body)
            return launched

    def ended(self, key: str, status: int) -> None:
        """Record, durably, how a key ended. To be called once, after `launch` in the same process has returned.

        Raises OSError if that cannot be recorded; this object knows it all the same.
        """
        descriptor = self._open.pop(key, None)
        try:
            if descriptor is None:
                descriptor = os.open(self._path(key, "launch"), os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
            _append(descriptor, {"record": "ended", "status": status})
            os.fsync(descriptor)
        except OSError:
            self._unwritten[key] = status
            raise
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def outcome(self, key: str) -> int | None:
        """The status that a launched key ended with, None if that is not recorded. Raises CannotTellError."""
        if key in self._unwritten:
            return self._unwritten[key]
        mark = self._read(key)
        return None if mark is None else mark.status

    def running(self, key: str) -> bool:
        """Whether a launched key may still be executing. Raises CannotTellError if that is not known.

        It is the process that was started that counts, not what that leaves behind in the background.
        """
        mark = self._read(key)
        if mark is None or mark.status is not None or key in self._unwritten:
            return False
        if mark.begun is not None and mark.begun.in_sight:
            return mark.begun.alive
        if self._locked(key):
            return True
        if not mark.legible:
            raise CannotTellError(f"{self._path(key, 'launch')}: who executes the key cannot be read")
        return False

    def process(self, key: str) -> Identity | None:
        """The process that executes the key, if it is one that this process can see."""
        mark = self._read(key)
        if mark is None or mark.status is not None or mark.begun is None or not mark.begun.in_sight:
            return None
        return mark.begun if mark.begun.alive else None

    def _mark(self, order: Order) -> int:
        """Make the key's file appear, exclusively and durably; returns its locked descriptor."""
        body = {"record": "launched", "version": VERSION, "key": order.key, "task": order.task, "token": order.token}
        draft, descriptor = self._draft(_line(body))
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            try:
                os.link(draft, self._path(order.key, "launch"))
            finally:
                os.unlink(draft)
            _sync_folder(self._folder)
        except FileExistsError:
            os.close(descriptor)
            raise AlreadyLaunchedError(f"{escaped(order.key)} was launched before") from None
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _read(self, key: str) -> Mark | None:
        """What is on record of a key, None if it was never launched. Raises CannotTellError."""
        path = self._path(key, "launch")
        data = _bytes(path)
        if data is None:
            return None
        first, *later = data.split(b"\n")
        body = _body(first)
        if not later or body is None or body.get("record") != "launched" or body.get("key") != key:
            raise CannotTellError(f"{path}: the mark of a launch cannot be read")
        _check_version(body, path)
        return _mark_of(later[:-1])  # what no line feed follows was cut short while it was written

    def _barrier(self, task: str) -> int:
        path = self._path(task, "barrier")
        data = _bytes(path)
        if data is None:
            return 0
        body = _body(data.removesuffix(b"\n"))
        if body is None or body.get("record") != "barrier" or body.get("task") != task:
            raise CannotTellError(f"{path}: the newest token of the task cannot be read")
        _check_version(body, path)
        if type(body.get("token")) is not int:
            raise CannotTellError(f"{path}: the newest token of the task cannot be read")
        return int(body["token"])

    def _publish(self, path: str, body: dict[str, Any]) -> None:
        """Put a file in the place of an older one: after a crash there is the one or the other, whole."""
        draft, descriptor = self._draft(_line(body))
        os.close(descriptor)
        os.replace(draft, path)
        _sync_folder(self._folder)

    def _draft(self, data: bytes) -> tuple[str, int]:
        """A durable file under a name that nobody looks for, which is all that a crash leaves of it."""
        path = f"{self._folder}/{os.urandom(16).hex()}.draft"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        try:
            _write(descriptor, data)
            os.fsync(descriptor)
        except BaseException:
            os.close(descriptor)
            os.unlink(path)
            raise
        return path, descriptor

    def _path(self, name: str, kind: str) -> str:
        return f"{self._folder}/{_hash(name)}.{kind}"

    def _locked(self, key: str) -> bool:
        try:
            descriptor = os.open(self._path(key, "launch"), os.O_RDONLY | os.O_NOFOLLOW)
        except OSError as error:
            raise CannotTellError(f"{self._path(key, 'launch')}: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    @contextmanager
    def _turn(self, task: str) -> Iterator[None]:
        """One at a time for each task, in all processes. Some tasks share a lock, so that there are few files."""
        self._prepare()
        descriptor = os.open(f"{self._folder}/{_hash(task)[:2]}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _prepare(self) -> None:
        """Make the folder, durably. The file `ready` says that this was done, and gives what is in it a name."""
        ready = f"{self._folder}/{READY}"
        if os.path.exists(ready):
            return
        missing = [os.path.abspath(self._folder)]
        while not os.path.isdir(above := os.path.dirname(missing[-1])):
            missing.append(above)
        for folder in reversed(missing):
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700)
            _sync_folder(os.path.dirname(folder))
        draft, descriptor = self._draft(_line({"record": "memory", "version": VERSION, "name": os.urandom(8).hex()}))
        os.close(descriptor)
        with suppress(FileExistsError):  # another process was quicker, and its name counts
            os.link(draft, ready)
        os.unlink(draft)
        _sync_folder(self._folder)


def _hash(name: str) -> str:
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def _line(body: dict[str, Any]) -> bytes:
    text = json.dumps(body, separators=(",", ":")).encode()
    return sha256(text).hexdigest()[:16].encode() + b" " + text + b"\n"


def _body(line: bytes) -> dict[str, Any] | None:
    """What a line says, None if it is damaged."""
    checksum, _, text = line.partition(b" ")
    if checksum != sha256(text).hexdigest()[:16].encode():
        return None
    with suppress(ValueError, RecursionError):
        body = json.loads(text)
        return body if isinstance(body, dict) else None
    return None


def _check_version(body: dict[str, Any], path: str) -> None:
    if body.get("version") != VERSION:
        raise CannotTellError(f"{path}: version {escaped(body.get('version'))} cannot be read")


def _mark_of(lines: list[bytes]) -> Mark:
    bodies = [_body(line) for line in lines if line]
    legible = [body for body in bodies if body is not None and _has_shape(body)]
    known = {str(body.get("record")): body for body in legible}
    status = known["ended"]["status"] if "ended" in known else None
    begun = Identity.from_json(known["begun"]) if "begun" in known else None
    return Mark(begun, status, len(legible) == len(bodies))


def _has_shape(body: dict[str, Any]) -> bool:
    """Whether a line behind the mark has what such a line has."""
    shape = _SHAPES.get(str(body.get("record")), {})
    typed = all(type(body.get(name)) is kind for name, kind in shape.items())
    return typed and ("pid" not in shape or 1 < body["pid"] < _MOST_PID)


def _append(descriptor: int, body: dict[str, Any]) -> None:
    """One more line. It starts with a line feed, in case the one before was cut short."""
    _write(descriptor, b"\n" + _line(body))


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)


def _bytes(path: str) -> bytes | None:
    try:
        with open(path, "rb", opener=_no_link) as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CannotTellError(f"{path}: {error.strerror}") from None


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
