"""English plurals."""


def plural(number: int, word: str) -> str:
    """`claim` for 1, `claims` for any other number."""
    return word if number == 1 else f"{word}s"
