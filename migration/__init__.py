"""Moves TApps of the old tapp-controller over: `python -m migration`, see docs/migration.md.

Needs Python's standard library and `kubectl`; whatever reaches your cluster with kubectl does here.
"""
