"""The API server, and the controllers beside it."""
