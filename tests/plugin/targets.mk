# Pictures for the docs, included by the Makefile.
.PHONY: session
session: $(VENV)/.ready ## Record the terminal session of docs/kubectl-tapp.md anew
	$(BIN)/python -m tests.plugin.session
