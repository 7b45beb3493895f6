# `make` lists what there is. Everything runs in .venv, which is made when first needed.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help check format test test-all serve bench bench-memory measure clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -e '.[test]'
	@touch $@

check: $(READY) ## format, lint, types and import contracts; changes nothing
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## format the code and repair what the linter can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

test: $(READY) ## all tests that need no PostgreSQL
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not postgres"

test-all: $(READY) ## all tests
	$(BIN)/python -m pytest -n auto --dist loadfile

serve: $(READY) ## run the server with its defaults
	$(BIN)/mnemon serve

bench: $(READY) ## measure against a direct call and two bare relays; prints a table
	$(BIN)/python -m bench

# The tools and their data are not part of this repository: ACCEPTANCE is the folder that holds seed_suite.py and memory_bench.py.
bench-memory: $(READY) ## what memory keeps and finds again; prints the figures of the tools in ACCEPTANCE
	$(BIN)/python -m bench.memory

measure: $(READY) ## sizes, complexity and typing of the code; prints a table
	$(BIN)/python scripts/measure.py

clean: ## remove .venv, builds and caches
	rm -rf .venv build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
