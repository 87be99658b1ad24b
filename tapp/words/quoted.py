"""Cuts texts of users before they are put into a message.

A message may repeat a text for each instance, so that a text of any length would make it huge.
"""

from typing import Final

# Characters of a name, path or value: Kubernetes' longest name has 253.
LONGEST: Final = 256
# Characters of a text that occurs once in a message, however many instances the message is about.
ONCE: Final = 500


def short(text: object, most: int = LONGEST) -> str:
    """Returns a text, cut to `most` characters; a cut text ends with three dots."""
    found = text if isinstance(text, str) else str(text)
    return found if len(found) <= most else f"{found[:most]}..."


def quoted(text: object, most: int = LONGEST) -> str:
    """Returns a text in quotation marks, cut to `most` characters.

    A value that is no text is returned as Python writes it, without quotation marks.
    """
    return repr(short(text, most)) if isinstance(text, str) else short(repr(text), most)
