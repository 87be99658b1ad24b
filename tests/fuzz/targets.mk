# Fuzzing and audits, included by the Makefile (which defines VENV and BIN).
FUZZ_INPUTS ?= 1000000
FUZZ_SEED ?= 1

.PHONY: fuzz
fuzz: $(VENV)/.ready ## Send the service a million inputs, in process (FUZZ_INPUTS, FUZZ_SEED)
	$(BIN)/python -m tests.fuzz --inputs $(FUZZ_INPUTS) --seed $(FUZZ_SEED) --processes 2
