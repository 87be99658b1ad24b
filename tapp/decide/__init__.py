"""Decides what each instance of a TApp needs, and what happens to the instance in this sync."""
