"""The documents: what they show is what the commands print, and what they name exists."""

from __future__ import annotations

import re
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


def test_there_is_an_example() -> None:
    """An empty list of examples would pass every comparison."""
    assert examples()


def test_quoted_rules_are_the_rules() -> None:
    """Code that the README shows is code of the model, to the letter."""
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "model").rglob("*.py"))
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    assert blocks
    for block in blocks:
        assert block in sources


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md"])
def test_named_paths_exist(name: str) -> None:
    """A room that is named can be found."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for path in re.findall(r"`((?:model|impl|proofs|conformance|tests|benchmarks)/[\w./]+)`", text):
        assert (ROOT / path).exists(), path


def test_numbers_in_the_changelog_are_counted() -> None:
    """Fourteen promises, fifteen lemmas, twenty-two protections: counted, not remembered."""
    model = entry("chain").model
    promises = [p for p in model.of_kind("invariant", "step") if not p.supporting]
    lemmas = [p for p in model.properties if p.supporting]
    assert (len(promises), len(lemmas), len(model.protections)) == (14, 15, 22)
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"fourteen promises,\s+fifteen lemmas, twenty-two protections", text)
