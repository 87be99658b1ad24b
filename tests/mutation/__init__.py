"""Breaks the decision code on purpose, one patch at a time: some test must notice each."""
