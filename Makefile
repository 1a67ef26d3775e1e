# Each target sets up its own virtual environment in .venv.
PYTHON ?= python3.11
VENV := .venv
STAMP := $(VENV)/.installed

.PHONY: reproduce compare test test-slow lint bench docs clean

reproduce: $(STAMP)  ## redraw the figures and test the claims; writes to results/
	$(VENV)/bin/holdfast reproduce --out results

compare: $(STAMP)  ## methods over public tests; writes to results/ and renews the table of the documentation
	$(VENV)/bin/holdfast compare --out results
	cp results/comparison.md docs/comparison_table.md

test: $(STAMP) lint  ## style, types and all tests but the slow ones
	$(VENV)/bin/pytest -n auto -m "not slow"

test-slow: $(STAMP)  ## the slow tests
	$(VENV)/bin/pytest -n auto -m slow tests

lint: $(STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

bench: $(STAMP)  ## speed against the limits of this machine; writes results/bench.json
	mkdir -p results
	$(VENV)/bin/holdfast bench --out results/bench.json

docs: $(STAMP)  ## build the documentation; writes to docs/_build/
	$(VENV)/bin/pip install --quiet --editable '.[docs]'
	$(VENV)/bin/sphinx-build -q -W docs docs/_build

clean:
	rm -rf $(VENV) results docs/_build

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --upgrade pip
	$(VENV)/bin/pip install --quiet --editable '.[dev]'
	touch $@
