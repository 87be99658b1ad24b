"""Stores requests to releases of the service, and the responses of that release.

There is one directory for each release. `python -m tests.contract.recorded` writes the directory of
the release in `hooks/version.py`. The directories of earlier releases never change.
"""
