# All targets make .venv first where it is missing. Another Python: make PYTHON=python3.12 ...
BIN := .venv/bin
WORKERS ?= 2

.PHONY: test lint format demo docs-rules clean

test: .venv/ready
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/spmdlint check .

format: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The linter exits with 1 because it finds the hazards, the run with 3 because the processes diverge; anything else is
# a failure of the demo.
demo: .venv/ready
	$(BIN)/spmdlint check fixtures/demo || test $$? -eq 1
	$(BIN)/spmdlint run -n 2 fixtures/divergent/swapped_calls.py || test $$? -eq 3

docs-rules: .venv/ready
	$(BIN)/python docs/generate.py

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/ready: pyproject.toml .ci/make-venv
	PYTHON="$(PYTHON)" .ci/make-venv
	touch $@
