"""Whether a TApp has come to where it was asked to be."""
