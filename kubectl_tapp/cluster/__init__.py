"""Reads from and writes to the cluster through the user's own kubectl."""
