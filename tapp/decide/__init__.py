"""Decisions: what each instance needs, and what may happen now."""
