# Every target sets itself up in .venv: each works as the first thing ever typed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
WORKERS ?= auto

STUDY ?= runs/smoke

.PHONY: help demo smoke-study test test-slow check docs dist format clean

help:
	@echo "make demo        see it work"
	@echo "make smoke-study a whole study from nothing to its report, in about a minute"
	@echo "make test        run the unit tests and the small integration tests"
	@echo "make test-slow   run the rest: other libraries, browsers, clusters, kills, learning, whole commands"
	@echo "make check       formatting, lint, types, import contract, docs"
	@echo "make docs        build the documentation into site/"
	@echo "make dist        build wheel and sdist into dist/, check them and try them in fresh environments"
	@echo "make format      let ruff rewrite the sources"
	@echo "make clean       remove what was built"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/lab.stamp: $(BIN)/python pyproject.toml constraints.txt
	@echo "Installing gramian[lab] into $(VENV): a few minutes the first time, torch is large ..."
	$(INSTALL) --editable '.[lab]'
	@touch $@

$(VENV)/dev.stamp: $(VENV)/lab.stamp
	@echo "Installing the extras for development into $(VENV) ..."
	$(INSTALL) --editable '.[lab,ray,sb3,tensorboard,wandb,trackio,jax,docs,dev]'
	@touch $@

demo: $(VENV)/lab.stamp
	$(BIN)/python -m gramian demo

# Goes on where it was stopped; STUDY=folder puts it elsewhere.
smoke-study: $(VENV)/lab.stamp
	$(BIN)/python -m gramian study run smoke --out $(STUDY)
	$(BIN)/python -m gramian analyze $(STUDY) --states 2_000 --out $(STUDY)/analysis >/dev/null
	$(BIN)/python -m gramian study report $(STUDY) --out $(STUDY)/report
	@echo "Open $(STUDY)/report/index.html"

test: $(VENV)/dev.stamp
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

test-slow: $(VENV)/dev.stamp
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal -m slow

check: $(VENV)/dev.stamp
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m zensical build --strict

docs: $(VENV)/dev.stamp
	$(BIN)/python -m zensical build --strict
	@echo "Open site/index.html"

dist: $(VENV)/dev.stamp
	$(INSTALL) --editable '.[dist]'
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/python -m tests.dist dist

format: $(VENV)/dev.stamp
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean:
	rm -rf $(VENV) site build dist demo .mypy_cache .ruff_cache .pytest_cache
