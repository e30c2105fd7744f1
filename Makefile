# All targets make .venv first where it is missing. Another Python: make PYTHON=python3.12 ...
BIN := .venv/bin
# Tests wait for the processes that they start, those of jobs most of the time: more run at a time than there are cores.
WORKERS ?= 3
JOBS ?= 5

.PHONY: test test-all lint format demo canary chaos breaking oracle simulator meshtypes docs docs-rules screenshots dist clean

# Two pools; 5 says that none of the tests asked for is in one of them.
PYTEST := $(BIN)/python -m pytest
in_pools = working=0; $(PYTEST) --pool working -n $(WORKERS) $(1) $(ARGS) || working=$$?; \
	waiting=0; $(PYTEST) --pool waiting -n $(JOBS) $(1) $(ARGS) || waiting=$$?; \
	test $$working -ne 5 || working=$$waiting; test $$waiting -ne 5 || waiting=$$working; \
	exit $$((working ? working : waiting))

test: .venv/ready
	@$(call in_pools,-m "not data and not long and not network")

# With the tests of the fixtures themselves, those of full size, and those that install packages.
test-all: .venv/ready
	@$(call in_pools,)

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/spmdlint check .

format: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# 1 says that there are findings and 3 that the processes diverged; anything else is a failure of the demo.
demo: .venv/ready
	@echo "-- Linting a small training program: three findings are expected."
	$(BIN)/spmdlint check fixtures/demo; test $$? -eq 1
	@echo "-- Running a program on two processes that make different calls: a report is expected."
	$(BIN)/spmdlint run -n 2 fixtures/divergent/swapped_calls.py; test $$? -eq 3

# Which places in JAX that the runtime checks hook into have moved, in the newest JAX that there is, also before its
# release, in an environment of its own.
canary: .venv/ready
	$(BIN)/python -m venv .venv-canary
	.venv-canary/bin/python -m pip install --quiet --upgrade --pre jax --editable .
	.venv-canary/bin/python -m tests.runtime.canary

# The long form of a test: 300 random schedules on real processes, resumable.
chaos: .venv/ready
	$(BIN)/python tests/runtime/chaos.py --schedules 300 --seed 0 --state chaos.json

# The long form of a test: a fault at every step, seam and request of the checks, 800 pairs of processes; resumable.
breaking: .venv/ready
	$(BIN)/python tests/runtime/breaking.py --state breaking.json

# The long form of a test: 5,000 random programs, as the linter judges them and as simulated processes run them.
simulator: .venv/ready
	$(BIN)/python tests/simulator/compare.py 5000

# The long form of a test: 10,000 random programs, judged by JAX and by the linter; resumable.
oracle: .venv/ready
	$(BIN)/python tests/oracle/campaign.py --programs 10000 --state oracle.jsonl

# The long form of a test: 5,000 random bodies, as the linter types them and as JAX does.
meshtypes: .venv/ready
	$(BIN)/python tests/meshtypes/compare.py 5000

docs-rules: .venv/ready
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/field.py
	$(BIN)/python docs/shown.py

# The site, in build/site; a warning is an error.
docs: .venv/ready
	$(BIN)/sphinx-build -W --keep-going -q -b html docs build/site

# The pictures of terminals in it.
screenshots: .venv/ready
	$(BIN)/python docs/screenshots.py

# What is released: a source distribution and a wheel in dist/.
dist: .venv/ready
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m zipfile -l dist/*.whl | tail -n 3

clean:
	rm -rf .venv .venv-canary build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/ready: pyproject.toml .ci/make-venv
	PYTHON="$(PYTHON)" .ci/make-venv
	touch $@
