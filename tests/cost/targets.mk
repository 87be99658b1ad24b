# What a sync costs, for every field in every shape, included by the Makefile (which defines VENV and
# BIN). COST_ONLY='containers.image' measures the cases whose names have this.
COST_ONLY ?=
COST_EVERY ?= 1

.PHONY: cost
cost: $(VENV)/.ready ## Measure what a sync costs with each field in each shape and world (COST_ONLY, _EVERY)
	$(BIN)/python -m tests.cost --only '$(COST_ONLY)' --every $(COST_EVERY)
