"""Objects, kinds and time."""
