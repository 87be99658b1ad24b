# `make` alone lists the targets.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
HOST ?= 127.0.0.1
PORT ?= 8080
export HOST PORT
# The tests start hundreds of Python processes: each would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

PIP := $(BIN)/pip install --quiet --disable-pip-version-check
REQUIREMENTS := requirements requirements-plugin requirements-dev

# Two stages, so that who only wants to look at it need not wait for the developers' tools.
$(VENV)/.small: requirements-plugin.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("error: this needs Python 3.11 \
	or newer, and $(PYTHON) is %d.%d: make PYTHON=python3.11 ..." % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements-plugin.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	touch $@

$(VENV)/.ready: $(VENV)/.small requirements-dev.txt
	$(PIP) --require-hashes -r requirements-dev.txt
	touch $@

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 20

.PHONY: install
install: $(VENV)/.ready ## Create the virtualenv with pinned requirements, kubectl-tapp in it

.PHONY: demo
demo: $(VENV)/.small ## Play a TApp's life on an embedded cluster, by the real service (ALL=1: more; WEB=1: a page)
	$(BIN)/python -m demo $(if $(ALL),--all) $(if $(WEB),--web)

.PHONY: shell
shell: $(VENV)/.small ## Open a shell with kubectl and kubectl tapp on an embedded cluster
	@$(BIN)/python -m demo.shell

.PHONY: film
film: $(VENV)/.small ## Write the demo as a moving picture, docs/img/demo.svg
	$(BIN)/python -m demo --film docs/img/demo.svg

.PHONY: kind
kind: $(VENV)/.small ## Run TApp on a kind cluster of its own (needs Docker, kind, kubectl and helm)
	@release/kind.sh

.PHONY: kind-down
kind-down: ## Delete that cluster
	kind delete cluster --name tapp

.PHONY: run
run: $(VENV)/.small ## Serve the hooks on HOST:PORT (default 127.0.0.1:8080)
	$(BIN)/python -m hooks

.PHONY: test
test: $(VENV)/.ready ## Run all tests that need no cluster
	$(BIN)/pytest -n auto --dist worksteal

.PHONY: full
full: $(VENV)/.ready ## Run the same tests whole: those that `make test` makes small, too
	FULL=1 $(BIN)/pytest -n auto --dist worksteal

.PHONY: lint
lint: $(VENV)/.ready ## Check style, types, layers and wording, and that generated files are fresh
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m crds.generate --check
	$(BIN)/python -m release.man --check
	$(BIN)/python -m tests.wording
	$(MAKE) --no-print-directory docs

.PHONY: check
check: $(VENV)/.ready ## Lint, and run the unit tests of what differs from main (BASE=...): seconds
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@told=$$($(BIN)/lint-imports) || { echo "$$told"; exit 1; }
	@tests=$$($(BIN)/python -m tests.changed) && test -z "$$tests" || \
	  $(BIN)/pytest -q -n auto --dist worksteal -m "not slow" $$tests

.PHONY: fmt
fmt: $(VENV)/.ready ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: generate
generate: $(VENV)/.ready ## Generate the CRD, the reference page and the manual page anew
	$(BIN)/python -m crds.generate
	$(BIN)/python -m release.man

.PHONY: requirements
requirements: $(VENV)/.ready ## Write requirements*.txt anew from requirements*.in, with hashes
	for each in $(REQUIREMENTS); do $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	  --generate-hashes --no-annotate -o $$each.txt $$each.in || exit; done

.PHONY: docs
docs: $(VENV)/.ready ## Build README and docs as a site into build/docs, strictly
	$(BIN)/python -m sphinx -W --keep-going -q -b html -c docs . build/docs

.PHONY: image
image: ## Build the container image tapp-hooks:dev
	docker build -t tapp-hooks:dev .

.PHONY: release
release: $(VENV)/.ready ## Write manifests, chart, wheel and SBOM to dist/ (VERSION=..., IMAGE=..., PAGE=...)
	@$(BIN)/python -m release --version '$(VERSION)' --image '$(IMAGE)' --home '$(PAGE)' \
	  $(if $(ARCHIVES),--archives '$(ARCHIVES)')

.PHONY: plugin
plugin: $(VENV)/.ready ## Write the plugin as an archive that needs no Python to dist/, for this platform
	@$(BIN)/python -m release.plugin

.PHONY: clean
clean: ## Remove what the other targets made
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

include $(wildcard tests/*/targets.mk)
