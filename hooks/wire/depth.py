"""Texts that are nested more deeply than anything that means something, made shallow.

The API server takes 10,000 levels wherever an object may hold anything: in a TApp's status, in a
template's unknown field, in a ControllerRevision. No decoder here does, because each level takes a
frame of the stack.
"""

import re
from typing import Final

LEVELS: Final = 200
"""Levels of a text that are read, many more than of a template (`DEEPEST` in
`tapp/kube/depth.py`), so that what is cut off is never taken for the whole."""

_BRACKET = re.compile(rb'[^][{}"]*+(?:"(?:[^"\\]++|\\.)*+"?[^][{}"]*+)*+(?:([][{}])|\Z)', re.DOTALL)
"""Text, with its strings, up to the next bracket that is in none, or to the end: where a search
finds nothing, it begins again at each character."""


def shallow(text: bytes) -> bytes:
    """The JSON with null for each object and list that lies more than `LEVELS` deep.

    Takes time in proportion to the text. What is no JSON stays none, but within what is cut off.
    """
    kept, level, end = list[bytes](), 0, 0
    for found in _BRACKET.finditer(text):
        if found[1] is None:
            break
        if found[1] in b"{[":
            level += 1
            if level == LEVELS + 1:
                kept += (text[end : found.start(1)], b"null")
                end = len(text)
        else:
            level -= 1
            if level == LEVELS:
                end = found.end()
    kept.append(text[end:])
    return b"".join(kept)
