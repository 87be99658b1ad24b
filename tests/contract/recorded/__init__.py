"""Requests that earlier releases were sent, and what they answered.

One directory per release. `python -m tests.contract.recorded` writes the directory of the release
in `hooks/version.py` anew; those of earlier releases are never touched again.
"""
