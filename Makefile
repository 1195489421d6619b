# uv is found, or fetched where it is missing, by scripts/uv.
UV := scripts/uv
ARGS ?=

# The tests start hundreds of Python processes: where this is set, each compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help quickstart test postgresql ray check static style pyright mypy install protos build bench-train

help: ## Say what there is
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST)

quickstart: ## Register, serve, train, evaluate and run an environment, end to end
	$(UV) run rleaas quickstart $(ARGS)

test: ## Run all tests (ARGS="-m 'not slow'" for the quick ones)
	scripts/browser
	$(UV) run pytest -n auto --dist loadfile --ignore packages/rleaas/tests/ray $(ARGS)
	$(if $(ARGS),,$(MAKE) postgresql ray)

postgresql: ## Run the tests of the server again with its records in PostgreSQL
	RLEAAS_TEST_ENGINE=postgresql $(UV) run pytest -n auto --dist loadfile -m "not slow" packages/rleaas/tests/server packages/rleaas/tests/client $(ARGS)

# Ray gives a node 30 seconds to come up, which a machine that is busy with other tests may miss.
ray: ## Run the tests in a real Ray cluster of two nodes, by themselves
	$(UV) run pytest packages/rleaas/tests/ray $(ARGS)

check: ## All that CI checks: format, lint, types, import contracts, generated code, tests
	$(UV) sync --locked
	$(MAKE) --jobs 2 --output-sync=target static
	$(UV) run coverage run -m pytest -q packages/core
	$(UV) run coverage report
	$(MAKE) test

static: style pyright mypy ## What CI checks without running anything: format, lint, types, import contracts, generated code

style:
	$(UV) run ruff format --check
	$(UV) run ruff check
	$(UV) run lint-imports
	$(UV) run --no-project scripts/gen_protos.py --check

pyright:
	$(UV) run pyright

mypy:
	$(UV) run mypy packages integration_tests examples scripts conftest.py

install: ## Put everything into .venv
	$(UV) sync

protos: ## Generate the protobuf modules from the protos
	$(UV) run --no-project scripts/gen_protos.py

build: ## Build the wheels and source archives into dist/
	$(UV) build --package rlcore --package rlmesh --package rleaas --out-dir dist

bench-train: ## Train with every algorithm, as a job and by its library alone (ARGS="--only PPO,DQN")
	$(UV) run python packages/rleaas/benchmarks/train.py $(ARGS)
