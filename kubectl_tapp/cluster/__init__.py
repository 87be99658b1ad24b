"""The user's kubectl, and what is read and written through it."""
