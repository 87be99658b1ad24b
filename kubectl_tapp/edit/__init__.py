"""Edits of a TApp as pure functions, and what the API server says about an edit."""
