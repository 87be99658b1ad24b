# The mutation check, included by the Makefile (which defines VENV and BIN). MUTATION_ARGS may name
# files and functions, for example MUTATION_ARGS='tapp/plan.py --only _held'.
MUTATION_SAMPLE ?= 40
MUTATION_SEED ?= 1
MUTATION_ARGS ?=

.PHONY: mutation
mutation: $(VENV)/.ready ## Break the code in 40 ways, one by one, and list what no test notices
	$(BIN)/python -m tests.mutation --sample $(MUTATION_SAMPLE) --seed $(MUTATION_SEED) $(MUTATION_ARGS)
