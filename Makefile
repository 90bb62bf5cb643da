# Each target prepares what it needs; `make run` and `make test` work in a fresh checkout.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help ready setup run test check bench conformance clean

export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Compiled files are kept even where the environment says otherwise: the tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=
ARGS ?=

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

ready:
	@scripts/setup

setup: ready ## install everything into .venv and node_modules, and a browser if there is none
	@echo "Ready: .venv/bin/tabhub"

run: ready ## start the hub, with a browser of its own if none connects (ARGS="--port 9600" adds options)
	@TABHUB_LAUNCH=$${TABHUB_LAUNCH:-auto} exec .venv/bin/tabhub start $(ARGS)

test: ready check ## all checks, then all tests (ARGS="-k name" chooses)
	@.venv/bin/pytest -n 3 --dist loadfile --no-loadscope-reorder $(ARGS)

check: ready ## lint, formatting, types, import layers, the extension, the requirements, no clocks in tests
	@echo "== ruff check";            .venv/bin/ruff check
	@echo "== ruff format --check";   .venv/bin/ruff format --check
	@echo "== mypy --strict";         .venv/bin/mypy
	@echo "== lint-imports";          .venv/bin/lint-imports
	@echo "== tsc on the extension";  node_modules/.bin/tsc -p tsconfig.json
	@echo "== requirements";          .venv/bin/python tests/check_requirements.py
	@echo "== clocks in tests";       .venv/bin/python tests/check_clocks.py

bench: ## measure the hub against a bare pass-through
	@scripts/setup bench
	@.venv/bin/python -m bench $(ARGS)

conformance: ready ## the official MCP conformance suite
	@.venv/bin/pytest tests/conformance $(ARGS)

clean: ## remove everything that was made here
	@rm -rf .venv node_modules dist build bench/build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
