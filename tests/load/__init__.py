"""Runs load and fault tests of the real service: `python -m tests.load`, on the loopback only."""
