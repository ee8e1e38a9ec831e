# Needs Python (>= 3.11) and make, nothing else: every target makes .venv itself and activates nothing.
# `make test ARGS="-k shards -x"` hands ARGS on to the tool behind the target.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
ARGS ?=
comma := ,
# MLX has no default back end on Linux; on macOS the wheel brings Metal.
CPU := $(if $(filter Linux,$(shell uname -s)),$(comma)cpu)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help test demo setup lint format types laws packaging browser docs bench oracle oracle-sample vocabularies references clean

help:
	@echo 'make test | demo                  the two to start with'
	@echo 'make setup                        test and lint tools in .venv'
	@echo 'make lint | format | types        ruff; ruff, rewriting files; mypy and pyright'
	@echo 'make laws                         the property tests, with many more examples'
	@echo 'make packaging                    build and install in fresh environments'
	@echo 'make browser                      look at the pages in Debian'"'"'s Chromium'
	@echo 'make docs                         the documentation, in build/docs'
	@echo 'make oracle | oracle-sample       compare with torch and transformers (a large install); a part of it'
	@echo 'make vocabularies                 compare ids with mistral-common and sentencepiece'
	@echo 'make references                   write the references of tests/golden anew, with the same'
	@echo 'make bench                        every benchmark, as ratios'
	@echo 'make clean                        delete .venv, caches and build output'

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "weightloom needs Python 3.11 or newer; name one with: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo 'Python lacks venv or pip (on Debian: python3-venv)' >&2; exit 1; }

$(VENV)/stamp-test: pyproject.toml | $(PY)
	$(PY) -m pip install --quiet -e '.[test$(CPU)]'
	@touch $@

$(VENV)/stamp-lint: $(VENV)/stamp-test
	$(PY) -m pip install --quiet -e '.[test,lint$(CPU)]'
	@touch $@

$(VENV)/stamp-docs: $(VENV)/stamp-test
	$(PY) -m pip install --quiet -e '.[test,docs$(CPU)]'
	@touch $@

# torch comes first and exactly, in a step of its own: a range may resolve to a newer and far larger build.
$(VENV)/stamp-oracle: $(VENV)/stamp-test
	$(PY) -m pip install --quiet 'torch==2.13.0'
	$(PY) -m pip install --quiet -e '.[test,oracle$(CPU)]'
	@touch $@

setup: $(VENV)/stamp-lint

test: $(VENV)/stamp-test
	$(PY) -m pytest --numprocesses auto --dist worksteal $(ARGS)

demo: $(VENV)/stamp-test
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" bash scripts/demo.sh $(ARGS)

lint: $(VENV)/stamp-lint
	$(PY) -m ruff check $(ARGS) .
	$(PY) -m ruff format --check .

format: $(VENV)/stamp-lint
	$(PY) -m ruff check --fix $(ARGS) .
	$(PY) -m ruff format .

types: $(VENV)/stamp-lint
	$(PY) -m mypy -p weightloom $(ARGS)
	$(PY) -m pyright --pythonpath $(PY)

laws: $(VENV)/stamp-test
	$(PY) -m pytest -m '(hypothesis or thorough) and not oracle and not packaging and not browser' --hypothesis-profile=thorough $(ARGS)

packaging: $(VENV)/stamp-test
	$(PY) -m pytest -m packaging $(ARGS)

docs: $(VENV)/stamp-docs
	$(PY) -m sphinx --builder html --fail-on-warning --keep-going --nitpicky --quiet docs build/docs $(ARGS)

# Debian's Chromium is looked for where its packages put it.
browser: $(VENV)/stamp-test
	$(PY) -m pip install --quiet -e '.[test,browser$(CPU)]'
	$(PY) -m pytest -m browser $(ARGS)

bench: $(VENV)/stamp-test
	@set -e; for script in benchmarks/*.py; do $(PY) "$$script" $(ARGS); done

# A process a core, and a thread a process: torch would take all cores for each.
ORACLE := OMP_NUM_THREADS=1 $(PY) -m pytest --numprocesses auto --dist worksteal

oracle: $(VENV)/stamp-oracle
	$(ORACLE) -m oracle $(ARGS)

oracle-sample: $(VENV)/stamp-oracle
	$(ORACLE) -m 'oracle and sample' $(ARGS)

# Without the stamps of the others: it puts an older NumPy into the environment.
vocabularies: $(VENV)/stamp-test
	$(PY) -m pip install --quiet -e '.[test,vocabularies$(CPU)]'
	$(PY) -m pytest -m oracle tests/runtime/tokenizing $(ARGS)

references: $(VENV)/stamp-oracle
	$(PY) -m tests.oracle.references

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
