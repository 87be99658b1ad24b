"""Texts of somebody else's in a sentence of ours: the one place where they are cut.

A sentence may stand once for each instance, so what a tenant has written in one place must not be
repeated at its length.
"""

from typing import Final

LONGEST: Final = 256  # Characters of a name, path or value: Kubernetes' longest name has 253
ONCE: Final = 500  # The same in a sentence that stands once, however many instances it is about


def short(text: object, most: int = LONGEST) -> str:
    """As much of a text as a sentence takes, with dots for the rest."""
    found = text if isinstance(text, str) else str(text)
    return found if len(found) <= most else f"{found[:most]}..."


def quoted(text: object, most: int = LONGEST) -> str:
    """The same in quotation marks, if it is a text."""
    return repr(short(text, most)) if isinstance(text, str) else short(repr(text), most)
