"""Imports run one way, so that the library never needs its evidence and the model never needs its checkers."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ALLOWED = {
    "onestart_model": set[str](),
    "onestart": set[str](),
    "onestart_report": {"onestart_model"},
    "onestart_proofs": {"onestart_model", "onestart_report"},
    "onestart_conformance": {"onestart_model", "onestart", "onestart_report"},
    "onestart_check": {"onestart_model", "onestart_report", "onestart_proofs", "onestart_conformance"},
}
FOLDERS = {
    "onestart_model": "model",
    "onestart": "impl",
    "onestart_proofs": "proofs",
    "onestart_conformance": "conformance",
    "onestart_report": "report",
    "onestart_check": "check",
}
OUTSIDE = {
    "onestart_model": {"attrs", "itf_py"},
    "onestart": {"apsw", "attrs", "click", "mcp", "psycopg"},
    "onestart_proofs": {"attrs", "click", "networkx", "numpy", "rich", "z3"},
    "onestart_report": {"attrs", "click", "rich"},
    "onestart_conformance": {"apsw", "attrs", "click", "hypothesis", "psycopg", "rich"},
    "onestart_check": {"attrs", "click", "rich"},
}


def imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]


def files(package: str) -> list[Path]:
    return sorted((ROOT / FOLDERS[package] / package).rglob("*.py"))


@pytest.mark.parametrize("package", list(ALLOWED))
def test_imports_run_one_way(package: str) -> None:
    """A package imports itself, what is below it, and the libraries that it declares."""
    own = set(ALLOWED)
    assert files(package)
    for path in files(package):
        names = set(imported(path.read_text(encoding="utf-8"))) - {package}
        assert names & own <= ALLOWED[package], path
        foreign = {name for name in names - own if name not in sys.stdlib_module_names}
        assert foreign <= OUTSIDE[package], path


def test_what_an_extra_brings_is_imported_in_one_place() -> None:
    """The library works without its extras: each is needed by one file, or one folder."""
    for extra, place in (("mcp", "flow/mcp.py"), ("psycopg", "sql/postgres")):
        users = [p for p in files("onestart") if extra in set(imported(p.read_text(encoding="utf-8")))]
        only = ROOT / "impl/onestart" / place
        assert users, extra
        assert all(only in (user, user.parent) for user in users), users


def test_the_check_can_fail() -> None:
    """The finder sees both forms of import, also inside of functions."""
    assert set(imported("def f():\n    from onestart_proofs.search import explore\nimport numpy.linalg as n")) == {
        "onestart_proofs",
        "numpy",
    }


@pytest.mark.parametrize("package", list(ALLOWED))
def test_files_have_one_subject(package: str) -> None:
    """A file that grows beyond 400 lines has more than one subject."""
    for path in files(package):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path
        assert path.stem not in ("utils", "helpers", "manager", "common"), path
