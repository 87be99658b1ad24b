"""Edits of a TApp, as JSON patches."""
