# make quickstart   set up, index real code and search it, offline
# make test         set up and run the tests
#
# Variables: PYTHON (3.11 or newer), TORCH_INDEX (a package index for torch alone; empty: pip's own),
#            PATHS (folders for the quickstart; empty: the standard library of the interpreter),
#            TEST_PROCESSES (that share the tests; 2).
PYTHON ?= python3
TORCH_INDEX ?=
PATHS ?=
TEST_PROCESSES ?= 2

VENV := .venv
BIN := $(VENV)/bin
TORCH := torch==2.13.0
PIP := $(BIN)/python -m pip --disable-pip-version-check
REQUIREMENTS := setup.cfg pyproject.toml Makefile
# The requirements can be met without our saying so (a venv made by hand, a newer lock): the stamps only save time.
VENV_STAMP := $(VENV)/.made
RUN_STAMP := $(VENV)/.ready-to-run
TEST_STAMP := $(VENV)/.ready-to-test

.PHONY: help quickstart test test-slow lint format clean
.DEFAULT_GOAL := help

help:
	@echo 'make quickstart   set up, index real code and search it, offline (PATHS="src lib" for your own folders)'
	@echo 'make test         set up and run the tests'
	@echo 'make test-slow    the tests that take minutes or a real model'
	@echo 'make lint         ruff'
	@echo 'make format       let ruff sort the imports and mend what it can'
	@echo 'make clean        remove the environment and what was built'

quickstart: $(RUN_STAMP)
	$(BIN)/hf-qualcode quickstart $(PATHS)

test: $(TEST_STAMP)
	$(BIN)/python -m pytest -q -n $(TEST_PROCESSES) --dist worksteal

test-slow: $(TEST_STAMP)
	$(BIN)/python -m pytest -q -m slow

lint: $(TEST_STAMP)
	$(BIN)/ruff check --no-cache .

format: $(TEST_STAMP)
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) build dist *.egg-info hf_qualcode.egg-info

# A stamp, for an environment whose making was killed has a python but no pip.
$(VENV_STAMP):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'hf-qualcode needs Python 3.11 or newer, and $(PYTHON) is not: make $(MAKECMDGOALS) PYTHON=python3.12' >&2; exit 1; }
	@echo 'setting up $(VENV), once: some minutes'
	@rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo 'python -m venv failed (on Debian and Ubuntu: apt install python3-venv)' >&2; exit 1; }
	@touch $@

$(RUN_STAMP): $(REQUIREMENTS) | $(VENV_STAMP)
	$(PIP) install -q $(TORCH) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX))
	$(PIP) install -q -e '.[offline,cpu]'
	@touch $@

$(TEST_STAMP): $(RUN_STAMP)
	$(PIP) install -q -e '.[offline,cpu,dev]'
	@touch $@
