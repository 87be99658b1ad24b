"""The error of everything that keeps a release from being made."""


class ReleaseError(Exception):
    """A release cannot be made; the message says in one sentence why, and what to do."""
