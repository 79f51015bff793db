# Every target makes its own .venv first, so that a fresh clone with Python 3.11+ and make is enough.

PYTHON ?= python3
BIN := .venv/bin
CONFIG ?= configs/eval_v1.yaml
export CONFIG # read as a variable of the shell, so that names with spaces or quotes are one argument
ARGS ?=

.PHONY: help eval test test-all test-release test-adapters test-adapters-training chaos lighthouse docs-images screenshots serve check format setup dev-setup requirements sandbox-image clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 24

eval: setup ## run CONFIG=configs/eval_v1.yaml and print its report; ARGS="--limit 5" adds options
	@$(BIN)/python manage.py eval $(if $(filter --resume --resume=% --env --env=%,$(ARGS)),,--config "$$CONFIG") $(ARGS)

test: dev-setup ## the test suite, as plain `pytest`; parts whose server or browser is missing are skipped by name
	@$(BIN)/python -m pytest $(ARGS)

test-all: test ## also the exhaustive tests, and those that use the database on PostgreSQL
	@$(BIN)/python -m tests

test-release: dev-setup ## the exhaustive tests that `make test-all` only samples: every solution of the workspaces' environments
	@$(BIN)/python -m pytest -m release $(ARGS)

test-adapters: dev-setup ## the adapters of clients/python with the real packages, in environments of their own in var/
	@LLMEVAL_ALL_ADAPTERS=1 $(BIN)/python -m pytest -m exhaustive -n 0 tests/runs/rollouts/adapters/test_adapters.py $(ARGS)

test-adapters-training: dev-setup ## also two steps of GRPO with TRL, which installs torch (700 MB without CUDA)
	@LLMEVAL_ALL_ADAPTERS=1 LLMEVAL_ADAPTER_TRAINING=1 $(BIN)/python -m pytest -m exhaustive -n 0 tests/runs/rollouts/adapters/test_adapters.py $(ARGS)

chaos: dev-setup ## a run on three workers while processes are killed and services fail; ARGS=--full for 5,000 cases
	@$(BIN)/python -m tests.chaos $(ARGS)

lighthouse: dev-setup ## accessibility and best practices of the main pages in Lighthouse, which npm installs into var/
	@$(BIN)/python -m tests.browser.looks.lighthouse $(ARGS)

docs-images: dev-setup ## take the images of README.md and the tutorial anew
	@$(BIN)/python -m tests.browser.looks.docs_images

screenshots: dev-setup ## write the images that tests/browser/looks/test_screenshots.py compares pages with
	@LLMEVAL_WRITE_SCREENSHOTS=1 $(BIN)/python -m pytest -q -n 0 -m exhaustive tests/browser/looks/test_screenshots.py

serve: setup ## the web site and its worker; prints the address and how to sign in
	@$(BIN)/python manage.py serve $(ARGS)

check: dev-setup ## ruff, mypy, import-linter, missing migrations, docs
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/mypy
	@$(BIN)/python manage.py makemigrations --check --dry-run
	@$(BIN)/python -m pytest -q tests/site/test_docs.py

format: dev-setup ## ruff's fixes and formatting
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

setup: .venv/.installed
dev-setup: .venv/.installed-dev

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "LLM-Eval needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
			"Name another: make PYTHON=python3.11 ..."; exit 1; }
	@$(PYTHON) -m venv .venv || { echo "No venv module: on Debian and Ubuntu, apt-get install python3-venv."; exit 1; }

.venv/.installed: requirements.txt | .venv/bin/python
	@echo "Installing into .venv (about a minute, once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

.venv/.installed-dev: requirements-dev.txt .venv/.installed
	@echo "Installing the developers' packages into .venv ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

requirements: ## write the requirements files anew from pyproject.toml (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --no-annotate --no-header --upgrade \
		pyproject.toml -o requirements.txt
	uv pip compile --quiet --universal --python-version 3.11 --no-annotate --no-header --extra dev \
		-c requirements.txt pyproject.toml -o requirements-dev.all
	{ echo "-r requirements.txt"; grep -vxFf requirements.txt requirements-dev.all; } > requirements-dev.txt
	for extra in s3 traces; do \
		uv pip compile --quiet --universal --python-version 3.11 --no-annotate --no-header --extra $$extra \
			-c requirements-dev.txt pyproject.toml -o requirements-$$extra.all; \
		grep -vxFf requirements.txt requirements-$$extra.all > requirements-$$extra.txt; \
	done
	rm requirements-dev.all requirements-s3.all requirements-traces.all

sandbox-image: ## the Docker image of the sandbox; PACKAGES=1 makes the one with numpy, pandas and pytest for candidates
	docker build -f sandbox/image/Dockerfile \
		$(if $(PACKAGES),--target packages -t llmeval-sandbox:packages,--target plain -t llmeval-sandbox) sandbox

clean: ## remove .venv, var/ and caches, without asking
	rm -rf .venv var .mypy_cache .ruff_cache .pytest_cache
