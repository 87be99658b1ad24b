"""Objects, kinds, quantities and time."""
