"""Breaks the code on purpose, one small change at a time: some test must notice each."""
