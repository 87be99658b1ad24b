"""Fuzzing of the whole service in process: `make fuzz`, and a small profile in `make test`."""
