# Fuzzing, load and audits, included by the Makefile (which defines VENV and BIN).
FUZZ_INPUTS ?= 200000
FUZZ_SEED ?= 1
LOAD_SECONDS ?= 300

.PHONY: fuzz
fuzz: $(VENV)/.ready ## Send the service 200,000 inputs, in process (FUZZ_INPUTS, FUZZ_SEED)
	FUZZ_INPUTS=$(FUZZ_INPUTS) $(BIN)/pytest tests/fuzz/test_fuzz.py -n auto --timeout 0 \
	  --hypothesis-seed=$(FUZZ_SEED)

.PHONY: load
load: $(VENV)/.ready ## Load gunicorn for LOAD_SECONDS while its workers are killed and it is rolled
	$(BIN)/python -m tests.load --seconds $(LOAD_SECONDS)

# Skipped, and why: asserts repeat what the types say (B101), gunicorn makes its heartbeat file in
# /dev/shm by itself (B108), the health check opens one fixed http URL (B310).
.PHONY: audit
audit: $(VENV)/.ready ## Look for insecure code, and for known vulnerabilities (asks PyPI)
	$(BIN)/bandit --quiet --recursive --skip B101,B108,B310 hooks tapp gunicorn.conf.py
	@$(BIN)/pip-audit --strict --requirement requirements.txt || { \
	  echo "audit: a dependency has a known vulnerability, or its records could not be read" >&2; \
	  echo "audit: (see above); without them nothing is known about the dependencies" >&2; \
	  exit 1; }
