"""Pods that look alike are read, compared and answered once.

The pods of one template differ in a few known places (`observe.Values`). `Looks` finds those
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

from tapp.objects import PodObject
from tapp.observe import Appearance, Pod, Values
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
        if value and index not in (_NUMBER_INDEX, _NODE_INDEX)
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


_NUMBER_INDEX, _NODE_INDEX = Values._fields.index("number"), Values._fields.index("node")
_QUOTES = (b'"', b'\\"')
_KEYED = (
    (INSTANCE.encode() + b"%b:%b", _NUMBER_INDEX),
    (POD_INDEX.encode() + b"%b:%b", _NUMBER_INDEX),
    (b"nodeName%b:%b", _NODE_INDEX),
)


class _Group:
    """Pods that look like the first one."""

    def __init__(
        self, look: Appearance, text: bytes, values: Values, instances: re.Pattern[bytes]
    ) -> None:
        self.look = look
        pattern = Pattern(text, values)
        self.fill, common = pattern.fill, pattern.common
        # A pod whose name stands in the common text cannot be told from that text.
        self.spoken_of = {name for piece in common for name in instances.findall(piece)}
        self.unclear = any(_TOKEN in piece for piece in common)


class Looks:
    """The appearances of one request's pods."""

    def __init__(self, app: str, groups: int = _GROUPS) -> None:
        """`app` is the TApp's name; with `groups=0` every pod is read by itself."""
        self._prefix = len(app) + 1
        self._instances = re.compile(re.escape(app.encode()) + rb"-\d+")
        self._groups: list[_Group] = []
        self._room = groups
        self._node_at = self._token_at = 0

    def observe(self, pod: PodObject) -> Pod:
        """The pod with its appearance, which it shares with the pods that look alike.

        Raises:
            msgspec.DecodeError: a part of it is no JSON.
        """
        meta = pod.metadata
        text = b"\n".join(
            (
                (meta.namespace or "").encode(),
                *(meta.labels, meta.annotations, pod.spec, meta.finalizers),
            )
        )
        values = self._values(meta.name.encode(), text, len(meta.labels))
        for group in self._groups:
            if group.fill(values) == text and values.name not in group.spoken_of:
                return Pod(pod, group.look, values)
        look = Appearance(pod)
        if self._room:
            group = _Group(look, text, values, self._instances)
            if not group.unclear:
                self._room -= 1
                self._groups.append(group)
                look.shared_by = values
        return Pod(pod, look, values)

    def _values(self, name: bytes, text: bytes, labels: int) -> Values:
        node = token = record = applied = b""
        at = self._node_at = _find(text, _NODE, self._node_at)
        if at >= 0:
            at += len(_NODE)
            node = text[at : text.index(b'"', at)]
        at = self._token_at = _find(text, _TOKEN, self._token_at)
        if at >= 0:
            token = text[at : at + _TOKEN_LENGTH]
        at = text.find(_RECORD, labels)
        if at >= 0:
            match = _STRING.match(text, at + len(_RECORD))
            record = match[0] if match is not None else b""
            applied = record.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        return Values(name, name[self._prefix :], node, token, record, applied)


def _find(text: bytes, what: bytes, near: int) -> int:
    """Where `what` stands in `text`; first looked for near its place in the pod before."""
    if near > _NEAR:
        at = text.find(what, near - _NEAR, near + _NEAR)
        if at >= 0:
            return at
    return text.find(what)
