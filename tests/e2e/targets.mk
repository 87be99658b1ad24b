# The end-to-end tests' targets, included by the Makefile (which defines PYTHON, VENV and BIN).
# E2E_ARGS goes to pytest, for example E2E_ARGS='-k kubelet -x'.
E2E_ARGS ?=
STORIES ?= 300
E2E_TESTS = E2E=1 $(BIN)/python -m pytest -p no:randomly tests/e2e
# Without a Go toolchain (exit code 3) there may still be a cluster elsewhere; kind needs none of it.
E2E_BUILD = test '$(E2E_KIND)' = 1 || $(PYTHON) tests/e2e/binaries/build.py || test $$? -eq 3

.PHONY: e2e-binaries
e2e-binaries: ## Build etcd, Kubernetes, kubectl, helm and containerd (needs Go)
	@$(PYTHON) tests/e2e/binaries/build.py

.PHONY: e2e
e2e: $(VENV)/.ready ## Test on a real API server: builds it if needed, starts and stops all of it
	@$(E2E_BUILD)
	$(E2E_TESTS) -m "e2e and not bench" $(E2E_ARGS)

.PHONY: differential
differential: $(VENV)/.ready ## Play 300 random stories in simulator and API server (STORIES=...)
	@$(E2E_BUILD)
	DIFFERENTIAL=$(STORIES) $(E2E_TESTS)/test_differential.py $(E2E_ARGS)

.PHONY: e2e-bench
e2e-bench: $(VENV)/.ready ## Measure 500 instances on a real API server (KRUISE_DIR=...: OpenKruise, too)
	@$(E2E_BUILD)
	$(E2E_TESTS) -m "e2e and bench" -s $(E2E_ARGS)
