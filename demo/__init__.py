"""`python -m demo`: a TApp's life on an embedded cluster, decided by the real service over HTTP."""
