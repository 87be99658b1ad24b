"""Bytes to values: what a request holds, and what is remembered of earlier ones."""
