"""Shortens texts of users before they become part of a message.

A message may repeat a text for each instance, so a long text could make the message huge.
"""

from typing import Final

# Most characters of a name, path or value in a message. Kubernetes' longest name has 253.
LONGEST: Final = 256
# Most characters of a text that occurs only once in a message, even if the message is about many
# instances.
ONCE: Final = 500


def short(text: object, most: int = LONGEST) -> str:
    """Returns a text of at most `most` characters, and three dots if it had to be shortened.

    A value that is no text is first converted to text.
    """
    found = text if isinstance(text, str) else str(text)
    return found if len(found) <= most else f"{found[:most]}..."


def quoted(text: object, most: int = LONGEST) -> str:
    """Returns a text in quotation marks, shortened to `most` characters.

    A value that is no text is returned in Python's notation, without quotation marks.
    """
    return repr(short(text, most)) if isinstance(text, str) else short(repr(text), most)
