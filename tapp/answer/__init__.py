"""A plan as it is answered: children, status, conditions, events."""
