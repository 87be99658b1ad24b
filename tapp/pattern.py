"""Texts that differ in a pod's own values only: one for all pods that look alike."""

from collections.abc import Callable
from operator import itemgetter

from tapp.vocabulary import INSTANCE, POD_INDEX

Values = tuple[bytes, bytes, bytes, bytes, bytes, bytes]
"""The texts in a pod that are its own, as they stand in the request's JSON.

Its name (also in its host name and the names of its claims), its instance's number (in two labels),
its node, the name of its token volume, the record of its last in-place update as it is escaped in
its annotation, and the same record escaped once more in the last-applied annotation.
"""
NAME, NUMBER, NODE, TOKEN, RECORD, RECORD_APPLIED = range(6)
ABSENT = b"\0"
"""A value that a pod does not have: no JSON text holds this byte, so it fits nowhere."""
NO_VALUES: Values = (ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT)


class Pattern:
    """A text with the values left out that are a pod's own."""

    __slots__ = ("common", "format", "pick")

    def __init__(self, text: bytes, values: Values) -> None:
        """Leaves the values of the pod that it belongs to out of `text`."""
        pieces: list[bytes] = []
        found: list[int] = []
        end = 0
        for start, stop, field in _places(text, values):
            if start >= end:
                pieces.append(text[end:start])
                found.append(field)
                end = stop
        pieces.append(text[end:])
        self.common = pieces
        self.format = b"%b".join(piece.replace(b"%", b"%%") for piece in pieces)
        # Two more values, printed as nothing, make itemgetter return a tuple in every case.
        self.format += b"%.0b%.0b"
        self.pick: Callable[[Values], tuple[bytes, ...]] = itemgetter(*found, 0, 0)

    def fill(self, values: Values) -> bytes:
        """The text with the values of another pod."""
        return self.format % self.pick(values)


def _places(text: bytes, values: Values) -> list[tuple[int, int, int]]:
    """Where a pod's own values stand: (start, stop, index in `Values`), by start, longest first.

    A number and a node are values only behind their key, plain or inside a JSON string.
    """
    searches = [
        (b"", value, index) for index, value in enumerate(values) if index not in (NUMBER, NODE)
    ]
    for key, index in _KEYED:
        searches += [(key % (quote, quote), values[index], index) for quote in _QUOTES]
    found = []
    for before, value, index in searches:
        what = before + value
        start = text.find(what)
        while start >= 0:
            stop = start + len(what)
            if not before or text[stop : stop + 1] in (b'"', b"\\"):
                found.append((start + len(before), stop, index))
            start = text.find(what, stop)
    return sorted(found, key=lambda place: (place[0], -place[1]))


_QUOTES = (b'"', b'\\"')
_KEYED = (
    (INSTANCE.encode() + b"%b:%b", NUMBER),
    (POD_INDEX.encode() + b"%b:%b", NUMBER),
    (b"nodeName%b:%b", NODE),
)


class SharedAnswer:
    """The answer to pods that look alike, once it has been right for a second one of them.

    Some text in an answer may be a pod's own value by chance: a revision, a namespace, a word in
    the template. So the first two pods are answered alone, and the pattern of the first has to give
    the answer of the second. If it does not, every pod is answered alone.

    Attributes:
        proved: the pattern, once it gives right answers; else None.
    """

    __slots__ = ("_first", "_pattern", "_wrong", "proved")

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._pattern: Pattern | None = None
        self._first = NO_VALUES
        self._wrong = False
        self.proved: Pattern | None = None

    def learn(self, answer: bytes, values: Values) -> None:
        """Takes note of the answer to a pod that was made for it alone."""
        pattern = self._pattern
        if pattern is None:
            self._first = values
            self._pattern = Pattern(answer, values)
        elif not self._wrong and values[NAME] != self._first[NAME]:
            self._wrong = pattern.fill(values) != answer
            self.proved = None if self._wrong else pattern
