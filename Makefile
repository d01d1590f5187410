# Needs only make and Python 3.11+ (with venv); everything else goes into $(VENV).
# Another interpreter: make test PYTHON=python3.13

PYTHON = python3
VENV = .venv
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip install -qq --disable-pip-version-check

version_ok = $(shell $(PYTHON) -c 'import sys; print(sys.version_info >= (3, 11))' 2>/dev/null)
need_python = $(if $(filter True,$(version_ok)),,$(error pegasos needs Python 3.11 or newer, \
which "$(PYTHON)" is not; name another, as in: make PYTHON=python3.13))

# A separate cache, and a fresh one: Numba does not notice an edited function of another file.
BOUNDS_CACHE = $(CURDIR)/.cache/numba-bounds

.PHONY: help demo test check fuzz bench format clean
.DEFAULT_GOAL = help

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' $(firstword $(MAKEFILE_LIST))

$(VENV)/.stamp: pyproject.toml
	$(need_python)@echo "setting up $(VENV) (once)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -e '.[dev]'
	@touch $@

demo: $(VENV)/.stamp  ## a short tour on real data
	@$(BIN)/pegasos demo

test: $(VENV)/.stamp  ## the tests: compiled; interpreted (coverage); with bounds checks
	$(BIN)/pytest -n 2
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -n 2 -m "not slow and not jit" --cov --cov-report=term
	@rm -rf "$(BOUNDS_CACHE)"
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR="$(BOUNDS_CACHE)" $(BIN)/pytest -n 2 -m bounds

check: test  ## test, then style, types and import rules
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

fuzz: $(VENV)/.stamp  ## a million mutated texts and model files each; 300 kills while training and saving, 200 on a stream
	$(BIN)/python tests/fuzz.py parser 1000000
	$(BIN)/python tests/fuzz.py model 1000000
	$(BIN)/python tests/kill.py 300
	$(BIN)/python tests/kill.py online 200

bench: $(VENV)/.stamp  ## side by side with the rivals, about ten minutes
	$(BIN)/python -m benchmarks race

format: $(VENV)/.stamp  ## rewrite the sources in the project's style
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

clean:  ## remove everything that make made, the virtual environment included
	rm -rf $(VENV) .cache .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache \
		.pytest_cache .ruff_cache build dist
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
