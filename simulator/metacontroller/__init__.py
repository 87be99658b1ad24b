"""Metacontroller: its caches, its controllers, and the calls of their hooks."""
