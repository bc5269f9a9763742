# `make demo` and `make test` set up what they need, once, in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.ready
DOCUMENTING := $(VENV)/.documenting

.PHONY: setup demo test lint docs bench reproduce readme clean

setup: $(SETUP)

# Repeated only when what it depends on has changed.
$(SETUP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("manifold-circuit needs Python 3.11 or later, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench,cluster]'
	touch $@

demo: setup
	$(BIN)/manifold-circuit demo

test: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The pages of docs/ and the reference from the docstrings, as HTML; a warning is an error.
docs: $(DOCUMENTING)
	$(BIN)/python -m sphinx -q -W --keep-going -d build/doctrees docs build/docs

$(DOCUMENTING): $(SETUP)
	$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

bench: setup
	$(BIN)/manifold-circuit bench

reproduce: setup
	$(BIN)/manifold-circuit reproduce

# The tables in README.md and docs/, from full runs of both.
readme: reproduce bench
	$(BIN)/python -m simulations.readme

clean:
	rm -rf $(VENV) results build docs/api .mypy_cache .ruff_cache .pytest_cache .hypothesis
