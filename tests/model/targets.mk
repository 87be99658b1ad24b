# The long run of the model, included by the Makefile (which defines VENV and BIN).
MODEL_STEPS ?= 20000
MODEL_SEED ?= 1

.PHONY: model
model: $(VENV)/.ready ## Play random lives for 20,000 steps, judged at every write (MODEL_STEPS, _SEED)
	$(BIN)/python -m tests.model --steps $(MODEL_STEPS) --seed $(MODEL_SEED)
