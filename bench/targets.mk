# The benchmark's targets, included by the Makefile (which defines VENV and BIN).
# BENCH_ARGS goes to the benchmark, for example BENCH_ARGS='--only stream --sizes 1000'.
BENCH_ARGS ?=

.PHONY: bench
bench: $(VENV)/.ready ## Measure the service: streams of syncs in process, and over HTTP (minutes)
	$(BIN)/python -m bench --json build/bench.json $(BENCH_ARGS)

.PHONY: bench-compare
bench-compare: $(VENV)/.ready ## Compare with commit BASE, or two files: BASE='old.json new.json'
	$(BIN)/python -m bench.compare $(or $(BASE),HEAD) $(BENCH_ARGS)
