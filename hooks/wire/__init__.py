"""Decodes requests from bytes to values, and caches the values of earlier requests."""
