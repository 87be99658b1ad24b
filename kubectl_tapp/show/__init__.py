"""Text and HTML pages for users: `status`, `why` and `plan`."""
