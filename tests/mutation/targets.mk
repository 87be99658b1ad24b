# The mutation check, included by the Makefile (which defines VENV and BIN). For example
# MUTATE='tapp/plan.py --only _held --sample 0'; --help says what there is.
MUTATE ?=

.PHONY: mutation
mutation: $(VENV)/.ready ## Break the code in 40 ways, one by one, and list what no test notices
	$(BIN)/python -m tests.mutation $(MUTATE)
