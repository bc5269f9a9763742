# `make demo` and `make test` set up what they need in .venv: the first what the circuit needs to
# run, the second the tools as well. Either is repeated only when pyproject.toml, constraints.txt or
# the chosen Python has changed.
PYTHON ?= python3
# Without kept bytecode every process compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
BIN := $(VENV)/bin
CHOSEN := $(shell $(PYTHON) -c 'import re, sys; print(re.sub(r"\W", "_", sys.version.split()[0] + sys.base_prefix))')
RUNTIME := $(VENV)/.runtime-$(CHOSEN)
TOOLS := $(VENV)/.tools-$(CHOSEN)
DOCUMENTING := $(VENV)/.documenting-$(CHOSEN)
PEERS := $(VENV)/.peers-$(CHOSEN)
# Compiling every module of every dependency takes longer than all the rest of the set-up; those
# that are used are compiled when they are first imported.
INSTALL := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-compile -c constraints.txt

TEST := -n 2 --dist worksteal

.PHONY: setup demo test test-full lint docs playground bench reproduce power soak sanitize known-data peers faults readme clean

setup: $(TOOLS)

$(RUNTIME): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("manifold-circuit needs Python 3.11 or later, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv --clear $(VENV)
	$(INSTALL) -e .
	touch $@

$(TOOLS): $(RUNTIME)
	$(INSTALL) -e '.[dev,bench,cluster]'
	touch $@

demo: $(RUNTIME)
	$(BIN)/manifold-circuit demo

# The quick tier: every rule, engine, experiment and command.
test: $(TOOLS)
	$(BIN)/python -m pytest $(TEST)

# The slow tests as well.
test-full: $(TOOLS)
	$(BIN)/python -m pytest $(TEST) -m ""

lint: $(TOOLS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The pages of docs/ and the reference from the docstrings, as HTML; a warning is an error.
docs: $(DOCUMENTING)
	$(BIN)/python -m sphinx -q -W --keep-going -d build/doctrees docs build/docs

$(DOCUMENTING): $(TOOLS)
	$(INSTALL) -e '.[docs]'
	touch $@

# The copy of the playground in docs/ and its picture, which needs chromium.
playground: $(TOOLS)
	$(BIN)/python -m tests.analysis.page.picture

bench: $(TOOLS)
	$(BIN)/manifold-circuit bench

reproduce: $(RUNTIME)
	$(BIN)/manifold-circuit reproduce

# How sure the registered repeats are of their verdicts, from seeds that are not reported.
power: $(RUNTIME)
	$(BIN)/manifold-circuit reproduce --seed 5000 --out results/pilot
	$(BIN)/python -m simulations.power results/pilot

# Faults and load at full size; the tests make a few of each trial.
soak: $(TOOLS)
	$(BIN)/python -m tests.soak

# The estimator on data that people know, and on a million points.
known-data: $(RUNTIME)
	$(BIN)/python -m simulations.known_data

# The circuit beside learners of other packages.
peers: $(PEERS)
	$(BIN)/python -m simulations.peers

$(PEERS): $(RUNTIME)
	$(INSTALL) -e '.[peers]'
	touch $@

# A random sample of faults in the code, and how many of them each tier of the tests finds.
faults: $(TOOLS)
	$(BIN)/python -m tests.faults

# The generated C++ under the address and undefined-behaviour sanitizers.
sanitize: $(TOOLS)
	$(BIN)/python -m tests.sanitize

# The tables in README.md and docs/, from full runs of all five, and of `make peers` where there is one.
readme: reproduce power bench soak known-data
	$(BIN)/python -m simulations.readme

clean:
	rm -rf $(VENV) $(VENV)-3.* results build docs/api .mypy_cache .ruff_cache .pytest_cache .hypothesis
