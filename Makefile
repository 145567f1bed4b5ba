# Every target sets up what it needs: a virtual environment in .venv with the project and its tools.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check -q
JOBS   ?= 2

.PHONY: help demo test test-full fuzz mutate lint format bench docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Debian's and Ubuntu's python3 may come without ensurepip; say what to install instead of a traceback.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "nacre needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	  || { echo "python3 -m venv failed; on Debian: apt-get install python3-venv"; exit 1; }

$(VENV)/.ready: pyproject.toml constraints.txt | $(BIN)/python
	@echo "setting up $(VENV) ..."
	@$(PIP) install -c constraints.txt -e '.[dev]'
	@$(BIN)/python -m compileall -q src  # an editable install leaves this to the first run
	@touch $@

$(VENV)/.bench: $(VENV)/.ready
	@$(PIP) install -c constraints.txt -e '.[dev,bench,optimal]'
	@touch $@

demo: $(VENV)/.ready ## set up, then check, run, time and debug examples, and compile a network
	@PATH="$(CURDIR)/$(BIN):$$PATH" ./examples/demo.sh

# The workers are the parallel part: without this each starts a thread per core for every product.
test test-full fuzz mutate: export OMP_NUM_THREADS := 1

test: $(VENV)/.ready ## set up, then run the tests that CI runs
	@$(BIN)/python -m pytest --forks $(JOBS) -m 'not full'

$(VENV)/.full: $(VENV)/.ready
	@$(PIP) install -c constraints.txt -e '.[dev,torch,mlir,oracles,architectures,browser,optimal]'
	@touch $@

test-full: $(VENV)/.full ## every test, the long ones too, with PyTorch, xDSL and IREE beside
	@NACRE_HYPOTHESIS_PROFILE=full $(BIN)/python -m pytest -n $(JOBS)

fuzz: $(VENV)/.ready ## the tests on random inputs, with thousands of them each
	@NACRE_HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -n $(JOBS) -m fuzz

mutate: $(VENV)/.ready ## break 10,000 race-free programs, and functions, and list what nobody notices
	@$(BIN)/python -m tests.nem.plan.mutants --count 10000 --seed 1
	@$(BIN)/python -m tests.tcbcheck.mutants --count 10000 --seed 1
	@$(BIN)/python -m tools.mutate_rooms

lint: $(VENV)/.ready ## formatting, lint and types, on code and tests
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(VENV)/.ready ## format the Python code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(VENV)/.bench ## measure against peers, side by side
	@for script in benchmarks/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

docs: $(VENV)/.ready ## write the generated tables and pages
	@$(BIN)/python -m tools.generate_opcodes
	@$(BIN)/python -m tools.generate_docs
	@$(BIN)/python -m tools.generate_operations
	@$(BIN)/python -m tools.generate_tables
	@$(BIN)/python -m tools.generate_plans

clean: ## remove what the targets made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
