# The net under the work on issues 37 and 39, included by the Makefile (which defines VENV and BIN).
# It goes with the latter.
SAME_BASE ?= 247ee43
SAME_LIVES ?= 200

.PHONY: same
same: $(VENV)/.ready ## Compare every answer with that of commit SAME_BASE, byte by byte (SAME_LIVES)
	$(BIN)/python -m tests.same $(SAME_BASE) $(SAME_LIVES)
