"""The author's words: the model of a TApp, its templates and their revisions."""
