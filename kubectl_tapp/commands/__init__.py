"""The commands of `kubectl tapp`; each long one has a file of its own."""
