"""`python -m demo`: plays the life of a TApp on an embedded cluster with the real service."""
