"""Load and faults of the real service: `python -m tests.load`, loopback only."""
