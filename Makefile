SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Newer than the lock and the project file when the environment is up to date.
STAMP := $(VENV)/.installed
# More arguments for `make demo`, `make test` and `make explore` (pytest's), and `make bench`.
ARGS ?=
# Containers often set it; each command that a test starts would then compile the packages anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test explore lint bench clean

help: ## this list
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

setup: $(STAMP) ## the environment in .venv, from the lock; Java 17 or newer
	@scripts/ensure_java.sh

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo 'error: the lock needs Python 3.11 or newer; try: make $(MAKECMDGOALS) PYTHON=python3.11' >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	    || { echo 'error: no virtual environment; on Debian and Ubuntu: sudo apt-get install python3-venv' >&2; exit 1; }
	@echo 'installing the locked dependencies into $(VENV) (about 1.3 GB; Spark is half of it)'
	@$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -e .
	@$(BIN)/pip --disable-pip-version-check check
	@touch $@

demo: setup ## the guided tour
	@$(BIN)/selfmaint demo $(ARGS)

lint: setup ## the gates: ruff, its formatter, mypy, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

test: lint ## the gates, then the doctests and the tests; Chromium for those of the audit's page
	@scripts/ensure_chromium.sh
	$(BIN)/pytest -n auto --doctest-modules datalog selfmaint tests $(ARGS)

explore: setup ## the random tests on many new examples, and many mutated inputs; without Spark
	HYPOTHESIS_PROFILE=explore $(BIN)/pytest -n auto -m random -k "not spark" tests $(ARGS)

bench: setup ## the benchmarks
	$(BIN)/python -m benchmarks $(ARGS)

clean: ## removes caches and whatever was built; keeps .venv
	rm -rf build dist *.egg-info .pytest_cache .hypothesis .import_linter_cache spark-warehouse metastore_db derby.log
	find . -path ./$(VENV) -prune -o -path ./.git -prune -o -type d \
	    \( -name __pycache__ -o -name .mypy_cache -o -name .ruff_cache \) -prune -exec rm -rf {} +
