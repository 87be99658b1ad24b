"""What the author of a TApp wrote: its model, its templates and their revisions."""
