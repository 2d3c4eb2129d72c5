# make check   the evidence: proofs, enumeration, drives, seeded faults
# make test    lint, types, all tests
# Both make their environment in .venv first, from Python 3.11 or newer and nothing else.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
JOBS ?= auto

.PHONY: check test lint types pytest bench clean

check: $(VENV)/ready
	$(BIN)/onestart check

test: lint types pytest

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/ready
	$(BIN)/mypy
	$(BIN)/mypy tests benchmarks

pytest: $(VENV)/ready
	$(BIN)/pytest -n $(JOBS)

bench: $(VENV)/ready
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/library.py

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[check,mcp,postgres,test]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
