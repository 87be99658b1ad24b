"""Metacontroller's semantics: caches, claiming, hooks, children."""
