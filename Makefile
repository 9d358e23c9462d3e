# Everything runs in .venv, made here when it is missing: no environment has to be activated.
#   make app     start the dashboard            make test    run the tests
#   make lint    style and types                make bench   compare speed with other libraries
#   make docs    the reference docs/api.md from the docstrings
#   make screens pictures of every page into docs/ (needs Chromium, takes minutes)
# PYTHON chooses the interpreter (3.11 to 3.13); ARGS goes to the command that is run, for example
#   make test ARGS="-m 'not browser'"           make app ARGS="--server.port 8600"

PYTHON ?= python3
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
KERNELS := $(shell grep -rl --include=*.py njit agg_core) agg_core/base/version.py
INSTALL = $(BIN)/python -m pip install -qq --disable-pip-version-check

.DELETE_ON_ERROR:
.PHONY: help app test lint docs bench screens dev clean

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

app: $(VENV)/app.stamp $(VENV)/warm.stamp
	@$(BIN)/streamlit run app.py $(ARGS)

# Two workers with one thread each (tests/conftest.py); ARGS="-n 0" runs all in one process.
test: dev
	@$(BIN)/python -m pytest -n 2 $(ARGS)

lint: dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

docs: dev
	@$(BIN)/python -m docs.make_api

screens: dev $(VENV)/warm.stamp
	@$(BIN)/python -m tests.browser.screens

bench: dev
	@$(BIN)/python -m benchmarks $(ARGS)

dev: $(VENV)/dev.stamp

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache

$(VENV)/app.stamp: requirements.txt $(BIN)/python
	@echo "Installing requirements.txt into $(VENV) (the first time takes a few minutes) ..."
	@$(INSTALL) -r requirements.txt
	@touch $@

# The learners, compiled again when their source has changed; the app does without it.
$(VENV)/warm.stamp: $(VENV)/app.stamp $(KERNELS)
	@echo "Preparing the learners for this machine (once, one to two minutes) ..."
	@$(BIN)/python -m agg_core warm && touch $@ || echo "They are prepared at their first run." >&2

$(VENV)/dev.stamp: requirements-dev.txt requirements.txt $(BIN)/python
	@echo "Installing requirements-dev.txt into $(VENV) (the first time takes a few minutes) ..."
	@$(INSTALL) -r requirements-dev.txt
	@touch $@

$(BIN)/python:
	@command -v "$(PYTHON)" >/dev/null || { \
		echo "Cannot find $(PYTHON): install Python 3.11, 3.12 or 3.13, or name one, for example: make app PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$$("$(PYTHON)" --version 2>&1) is too old: Python 3.11, 3.12 or 3.13 is needed; name one, for example: make app PYTHON=python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments: install its venv package (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@"$(PYTHON)" -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }
