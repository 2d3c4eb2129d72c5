"""The documents: what they show is what the commands print, and what they name exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from onestart.command_line import run
from onestart_model.catalog import entry

ROOT = Path(__file__).parent.parent
EXAMPLE = re.compile(r"<!-- example: (?P<arguments>.*?) -->\n```\n(?P<output>.*?)```", re.S)


def normal(text: str) -> list[str]:
    """Lines without what depends on the width of a table."""
    lines = (re.sub(r"─+", "─", line).rstrip() for line in text.splitlines())
    return [line for line in lines if line]


def examples() -> list[tuple[str, str]]:
    return [(m["arguments"], m["output"]) for m in EXAMPLE.finditer((ROOT / "README.md").read_text(encoding="utf-8"))]


@pytest.mark.parametrize(("arguments", "output"), examples(), ids=[a for a, _ in examples()])
def test_the_readme_shows_real_output(
    arguments: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A newcomer who types the example sees what the page says."""
    monkeypatch.chdir(tmp_path)
    run(arguments.split())
    assert normal(capsys.readouterr().out) == normal(output)


SCRIPT = re.compile(r"<!-- script: (?P<name>.*?) -->\n```\n(?P<output>.*?)```", re.S)


@pytest.mark.parametrize("name", ["killed.sh", "killed_flow.sh", "library.py"])
def test_the_examples_print_what_the_readme_says(name: str, tmp_path: Path) -> None:
    """Submit, kill -9, resubmit, one start: really run, also the program that uses the library."""
    shown = {m["name"]: m["output"] for m in SCRIPT.finditer((ROOT / "README.md").read_text(encoding="utf-8"))}
    bin_folder = str(Path(sys.executable).parent)
    shell = ["sh"] if name.endswith(".sh") else [sys.executable]
    done = subprocess.run(
        [*shell, str(ROOT / "examples" / name)],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout == shown[name]


def test_there_is_an_example() -> None:
    """An empty list of examples would pass every comparison."""
    assert examples()


def test_quoted_rules_are_the_rules() -> None:
    """Code that the README shows is code of the model, or of an example, to the letter."""
    rooms = (ROOT / "model", ROOT / "examples")
    sources = "".join(path.read_text(encoding="utf-8") for room in rooms for path in room.rglob("*.py"))
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    assert blocks
    for block in blocks:
        assert block in sources


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md"])
def test_named_paths_exist(name: str) -> None:
    """A room that is named can be found."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for path in re.findall(
        r"`((?:model|impl|proofs|conformance|report|check|tests|benchmarks|examples)/[\w./]+)`", text
    ):
        assert (ROOT / path).exists(), path


def test_numbers_in_the_changelog_are_counted() -> None:
    """Fourteen promises, fifteen lemmas, twenty-two protections: counted, not remembered."""
    model = entry("chain").model
    promises = [p for p in model.of_kind("invariant", "step") if not p.supporting]
    lemmas = [p for p in model.properties if p.supporting]
    assert (len(promises), len(lemmas), len(model.protections)) == (14, 15, 22)
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"fourteen promises,\s+fifteen lemmas, twenty-two protections", text)
