# Two commands do all the set-up: `make demo` and `make test`. `make help` lists the rest.

VENV   := .venv
PYTHON := $(VENV)/bin/python
STATE  := $(CURDIR)/.test/state

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types contracts unit bench speed format reference undo clean

help:  ## List the targets.
	@sed -n 's/^\([a-z]*\):.*##/\1\t/p' $(MAKEFILE_LIST) | expand -t 12

demo: $(VENV)/ready  ## Set everything up and do the main job once, on a real project.
	@$(VENV)/bin/harness demo --yes

test: $(VENV)/ready  ## Run every test, real engine included, and stop the engine it started.
	@.ci/lane check 3 $(MAKE) --no-print-directory lint types contracts unit
	@HARNESS_STATE=$(STATE) .ci/lane engine 18 .ci/engine-tests

check: $(VENV)/ready  ## Lint, types, layer contracts and unit tests: under 3 minutes, no engine.
	@.ci/lane check 3 $(MAKE) --no-print-directory lint types contracts unit

lint: $(VENV)/ready
	@$(VENV)/bin/ruff check --quiet . && $(VENV)/bin/ruff format --quiet --check .

types: $(VENV)/ready
	@$(VENV)/bin/mypy

contracts: $(VENV)/ready
	@$(VENV)/bin/lint-imports

unit: $(VENV)/ready
	@$(PYTHON) -m pytest -q -n 2 tests/unit tests/architecture

bench: $(VENV)/ready  ## Measure, print a JSON line a figure, fail over a bound. Takes 15 minutes.
	@HARNESS_STATE=$(STATE) $(PYTHON) -m tests.bench

speed: $(VENV)/ready  ## The same, and write docs/reference/speed.md with its plot anew.
	@HARNESS_STATE=$(STATE) $(PYTHON) -m tests.bench --page docs/reference

format: $(VENV)/ready  ## Format the code.
	@$(VENV)/bin/ruff check --quiet --fix . ; $(VENV)/bin/ruff format --quiet .

reference: $(VENV)/ready  ## Write the generated reference pages and schemas anew.
	@$(PYTHON) docs/generate_reference.py && $(PYTHON) docs/generate_commands.py && \
	  $(PYTHON) docs/generate_python.py && $(PYTHON) docs/generate_records.py

undo: $(VENV)/ready  ## Take back what demo and test installed and started on this machine.
	@$(VENV)/bin/harness setup --undo --yes
	@HARNESS_STATE=$(STATE) $(VENV)/bin/harness setup --undo --yes

clean: undo  ## The same, and remove what make made here.
	rm -rf $(VENV) .test .demo build dist

$(VENV)/ready: pyproject.toml .ci/venv
	@.ci/venv $(VENV)
