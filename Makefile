# Each target prepares what it needs; `make run` and `make test` work in a fresh checkout.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help ready ready-tests setup run test check apps bench conformance clean

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

run: ready ## start the hub, with a managed browser if none connects (ARGS="--port 9600" adds options)
	@TABHUB_LAUNCH=$${TABHUB_LAUNCH:-auto} exec .venv/bin/tabhub start $(ARGS)

ready-tests:
	@scripts/setup tests

test: ready-tests check ## all checks, then all tests (ARGS="-k name" chooses)
	@.venv/bin/python -m tests.apps.installation node-red
	@.venv/bin/pytest -n 3 --dist loadfile --no-loadscope-reorder $(ARGS)

check: ready ## lint, formatting, types, import layers, documented API only, the extension, requirements, tool schemas, no clocks in tests
	@$(MAKE) --no-print-directory -j 2 $(CHECKS)

# The longest first: two run at a time.
CHECKS = check-types check-lint check-format check-extension check-layers check-private-api check-requirements check-tool-schemas check-clocks
.PHONY: $(CHECKS)
check-types: ; @.venv/bin/mypy && echo "ok: types (mypy --strict)"
check-lint: ; @.venv/bin/ruff check --quiet && echo "ok: lint (ruff)"
check-format: ; @.venv/bin/ruff format --check --quiet && echo "ok: formatting (ruff)"
check-extension: ; @node_modules/.bin/tsc -p tsconfig.json && echo "ok: types of the extension (tsc)"
check-layers: ; @.venv/bin/lint-imports --no-logo && echo "ok: import layers"
check-private-api: ; @.venv/bin/python tests/check_private_api.py && echo "ok: documented API of packages only"
check-requirements: ; @.venv/bin/python tests/check_requirements.py && echo "ok: requirements"
check-tool-schemas: ; @.venv/bin/python -m tests.check_tool_schemas && echo "ok: schemas of the built-in tools"
check-clocks: ; @.venv/bin/python tests/check_clocks.py && echo "ok: no clocks in tests"

apps: ready ## an agent's tasks in JupyterLab, Node-RED, Streamlit and Wagtail, which it installs (ARGS="wagtail" chooses)
	@.venv/bin/python -m tests.apps $(ARGS)

bench: ## measure the hub against a bare pass-through
	@scripts/setup bench
	@.venv/bin/python -m bench $(ARGS)

conformance: ready ## the official MCP conformance suite
	@.venv/bin/pytest tests/conformance $(ARGS)

clean: ## remove everything that was made here
	@rm -rf .venv .cache node_modules bench/peers/node_modules dist build bench/build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	@find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
