# The benchmark's targets, included by the Makefile (which defines VENV and BIN).
# BENCH_ARGS goes to the benchmark, for example BENCH_ARGS='--sizes 10000'.
BENCH_ARGS ?=

.PHONY: bench
bench: $(VENV)/.ready ## Measure what syncs cost, beside parsing and writing the same JSON (minutes)
	$(BIN)/python -m tests.bench $(BENCH_ARGS)

.PHONY: bench-compare
bench-compare: $(VENV)/.ready ## Measure another commit beside the working tree (BASE=HEAD)
	$(BIN)/python -m tests.bench --against $(or $(BASE),HEAD) $(BENCH_ARGS)
