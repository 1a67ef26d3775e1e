# Each target sets up its own virtual environment in .venv.
# 3.11 is tried first because the recorded claims and comparison cells were computed with it; then the newest. Each is run,
# not only looked up, because version managers leave commands on the path that start nothing.
WORKS := -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
PYTHON ?= $(shell for p in python3.11 python3.14 python3.13 python3.12 python3; do $$p $(WORKS) && echo $$p && break; done)
VENV := .venv
STAMP := $(VENV)/.installed
# Each core gets a row of tests that follow one another, and who is done takes half of what another one has left: no core
# waits long for the last tests of another, however long single ones are.
SHARED := -n auto --dist worksteal
# Tests start many processes; each would compile the package and, with pytest, the tests anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: reproduce compare tables test test-fast test-slow fuzz kills endless million lab lab-load lab-fuzz lab-slider lint bench docs gallery licences release clean

reproduce: $(STAMP)  ## redraw the figures and test the claims; writes to results/
	$(VENV)/bin/holdfast reproduce --out results

compare: $(STAMP)  ## methods over public tests; writes to results/ and renews the table of the documentation
	$(VENV)/bin/holdfast compare --out results
	cp results/comparison.md docs/comparison_table.md

tables: $(STAMP)  ## what the page on tables says: errors, planted dangers and coverage; renews docs/table_claims.csv
	$(VENV)/bin/python -m holdfast_studies.comparison.table_claims docs/table_claims.csv

test: $(STAMP)  ## style, types, layers, documentation and all tests but the slow ones
	$(MAKE) --jobs=2 lint docs
	$(MAKE) test-fast

test-fast: $(STAMP)  ## all tests but the slow ones
	$(VENV)/bin/pytest $(SHARED) -m "not slow and not release"

test-slow: $(STAMP)  ## the slow tests; says which were left out, and why
	$(VENV)/bin/pytest $(SHARED) -rs -m slow tests

fuzz: $(STAMP)  ## 10,000 fuzzed files, options and models through the command line
	PYTHONPATH=tests $(VENV)/bin/python -m fuzzing.campaign 10000

endless: $(STAMP)  ## 10^8 rows, generated on two Dask workers and fitted there: time and memory
	PYTHONPATH=tests $(VENV)/bin/python -m endless.campaign 100000000

kills: $(STAMP)  ## one sweep, killed at 30 random moments and resumed each time
	PYTHONPATH=tests $(VENV)/bin/python -m sweeps.kill_campaign 30

million: $(STAMP)  ## 10^6 trajectories on an accelerator, and their final signals against float64 runs on the CPU
	$(VENV)/bin/holdfast sweep examples/million.toml --out results/million --devices
	PYTHONPATH=tests $(VENV)/bin/python -m sweeps.double_campaign results/million 6.0

lab: $(STAMP)  ## the laboratory, a page on this computer where sliders move simulations
	$(VENV)/bin/holdfast lab

lab-load: $(STAMP)  ## 50 users move sliders of the laboratory for a minute
	PYTHONPATH=tests $(VENV)/bin/python -m apps.lab.load_campaign 50 60

lab-fuzz: $(STAMP)  ## 10,000 fuzzed requests and uploads to the laboratory
	PYTHONPATH=tests $(VENV)/bin/python -m apps.lab.fuzz_campaign 10000

lab-slider: $(STAMP)  ## from a slider to new curves, in a browser: the median of 50, and the time to a usable page
	PYTHONPATH=tests $(VENV)/bin/python -m apps.lab.slider_campaign

lint: $(STAMP)  ## style, types and layers
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/mypy tests/extending
	$(VENV)/bin/lint-imports

bench: $(STAMP)  ## speed against the limits of this machine; writes results/bench.json
	mkdir -p results
	$(VENV)/bin/holdfast bench --out results/bench.json

docs: $(STAMP)  ## build the documentation, without running its gallery; warnings are errors; writes to docs/_build/
	$(VENV)/bin/sphinx-build -q -W --keep-going -D plot_gallery=0 docs docs/_build

gallery: $(STAMP)  ## the same, and run the scripts of the gallery, which draw its figures
	$(VENV)/bin/sphinx-build -q -W --keep-going docs docs/_build

licences: $(STAMP)  ## ask the package index for the licences of all dependencies; renews docs/licences.md
	$(VENV)/bin/python docs/licences.py

release: $(STAMP)  ## wheel and sdist in dist/, checked, installed and tried in fresh environments
	rm -rf dist
	$(VENV)/bin/python -m build --outdir dist
	$(VENV)/bin/twine check --strict dist/*
	$(VENV)/bin/pytest -m release tests/packaging

clean:
	rm -rf .venv* .cache dist results docs/_build docs/api docs/science docs/tutorials docs/more

$(STAMP): pyproject.toml
	$(if $(PYTHON),,$(error no Python from 3.11 on was found; name one with PYTHON=))
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --upgrade pip
	$(VENV)/bin/pip install --quiet --editable '.[dev]'
	touch $@
