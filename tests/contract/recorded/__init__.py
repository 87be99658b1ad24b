"""Requests to earlier releases, and their responses.

One directory for each release. `python -m tests.contract.recorded` writes the directory of the
release in `hooks/version.py`. The directories of earlier releases never change.
"""
