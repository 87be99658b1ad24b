"""What keeps a release from being made, said to a person."""


class ReleaseError(Exception):
    """One sentence: what is wrong and what to do."""
