"""Pods that look alike are read, compared and answered once.

The pods of one template differ in a few known places (`appearance.Values`). `Looks` finds those
places in the first such pod and keeps the text around them. Another pod whose text is the same
around its own values has the same appearance, and its answer is the first one's with its own
values. Nothing is guessed: the texts are compared byte by byte, and a pod that fits nowhere is read
by itself.

This saves decoding and comparing some 5 KB of JSON a pod. What a pod is answered does not depend on
it; a test answers random requests with and without it.
"""

import re
from collections.abc import Callable
from operator import itemgetter

from tapp.appearance import NAME, NODE, NUMBER, Appearance, Values
from tapp.objects import PodMeta, PodObject
from tapp.observe import Pod
from tapp.vocabulary import IN_PLACE_UPDATE, INSTANCE, POD_INDEX

_GROUPS = 8
"""How many appearances are kept to compare with; what fits none of them is read by itself."""

_NODE = b'"nodeName":"'
_TOKEN = b"kube-api-access-"
_TOKEN_LENGTH = len(_TOKEN) + 5
_RECORD = f'"{IN_PLACE_UPDATE}":"'.encode()
_STRING = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_NEAR = 256
"""How far from its place in the pod before a value is looked for first."""


Find = Callable[[bytes, bytes, int], int]
String = Callable[[bytes, int], bytes]


class Pattern:
    """A text with the values left out that are a pod's own."""

    __slots__ = ("_format", "_pick", "common")

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
        self._format = b"%b".join(piece.replace(b"%", b"%%") for piece in pieces)
        # Two more values, printed as nothing, make itemgetter return a tuple in every case.
        self._format += b"%.0b%.0b"
        self._pick: Callable[[Values], tuple[bytes, ...]] = itemgetter(*found, 0, 0)

    def fill(self, values: Values) -> bytes:
        """The text with the values of another pod."""
        return self._format % self._pick(values)


def _places(text: bytes, values: Values) -> list[tuple[int, int, int]]:
    """Where a pod's own values stand: (start, stop, index in `Values`), by start, longest first.

    A number and a node are values only behind their key, plain or inside a JSON string.
    """
    searches = [
        (b"", value, index)
        for index, value in enumerate(values)
        if value and index not in (NUMBER, NODE)
    ]
    for key, index in _KEYED:
        if values[index]:
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


class _Group:
    """Pods that look like the first one."""

    def __init__(
        self, look: Appearance, text: bytes, values: Values, instances: re.Pattern[bytes]
    ) -> None:
        self.look = look
        pattern = Pattern(text, values)
        self.fill = pattern.fill
        # A pod whose name stands in the common text cannot be told from that text.
        self.spoken_of = {name for piece in pattern.common for name in instances.findall(piece)}
        self.unclear = any(_TOKEN in piece for piece in pattern.common)


class Looks:
    """The appearances of one request's pods."""

    def __init__(self, app: str, groups: int = _GROUPS) -> None:
        """`app` is the TApp's name; with `groups=0` every pod is read by itself."""
        self._prefix = len(app) + 1
        self._instances = re.compile(re.escape(app.encode()) + rb"-\d+")
        self._groups: list[_Group] = []
        self._room = groups
        self._node_at = self._token_at = self._record_at = -1

    def observe(self, pod: PodObject) -> Pod:
        """The pod with its appearance, which it shares with the pods that look alike.

        Raises:
            msgspec.DecodeError: a part of it is no JSON.
            UnicodeDecodeError: a part of it is no UTF-8.
        """
        meta = pod.metadata
        text = b"\n".join((meta.labels, meta.annotations, pod.spec, meta.finalizers))
        if not text.isascii():
            text.decode()  # what is no UTF-8 is refused, though it stood in a pod's own values
        name = meta.name.encode()
        if self._groups:
            values = self._values(name, text, _near, _string_before_another)
            group = self._group(meta, text, values)
            if group is not None:
                return Pod(pod, group.look, values)
        values = self._values(name, text, _anywhere, _string)
        group = self._group(meta, text, values)
        if group is not None:
            return Pod(pod, group.look, values)
        look = Appearance(pod)
        if self._room:
            group = _Group(look, text, values, self._instances)
            if not group.unclear:
                self._room -= 1
                self._groups.append(group)
                look.shared_by = values
        return Pod(pod, look, values)

    def _group(self, meta: PodMeta, text: bytes, values: Values) -> _Group | None:
        """The group that a pod looks like; it comes first next time, as its like often follows."""
        for place, group in enumerate(self._groups):
            if (
                group.fill(values) == text
                and group.look.namespace == meta.namespace
                and values[NAME] not in group.spoken_of
            ):
                if place:
                    self._groups.insert(0, self._groups.pop(place))
                return group
        return None

    def _values(self, name: bytes, text: bytes, find: Find, string: String) -> Values:
        node = token = record = applied = b""
        at = self._node_at = find(text, _NODE, self._node_at)
        if at >= 0:
            at += len(_NODE)
            node = text[at : text.index(b'"', at)]
        at = self._token_at = find(text, _TOKEN, self._token_at)
        if at >= 0:
            token = text[at : at + _TOKEN_LENGTH]
        at = self._record_at = find(text, _RECORD, self._record_at)
        if at >= 0:
            record = string(text, at + len(_RECORD))
            applied = record.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        return name, name[self._prefix :], node, token, record, applied


def _near(text: bytes, what: bytes, place: int) -> int:
    """Where `what` stands close to its place in the pod before; -1 where that pod had none."""
    if place < 0 or text.startswith(what, place):
        return place
    return text.find(what, max(0, place - _NEAR), place + _NEAR)


def _anywhere(text: bytes, what: bytes, _place: int) -> int:
    return text.find(what)


def _string(text: bytes, start: int) -> bytes:
    """The JSON string whose text begins at `start`, as it is escaped."""
    match = _STRING.match(text, start)
    return match[0] if match is not None else b""


def _string_before_another(text: bytes, start: int) -> bytes:
    """The same in a tenth of the time, where another string follows."""
    found = text[start : text.find(b'","', start)]
    escaped = found.count(b'\\"')
    if b"\\\\" in found or found.endswith(b"\\") or found.count(b'"') != escaped:
        return _string(text, start)  # it may have ended earlier, or goes on
    return found
