"""Pods that look alike are read, compared and answered once.

The pods of one template differ in a few known places (`appearance.Values`). `Looks` finds those
places in the first such pod and keeps the text around them. Another pod whose text is the same
around its own values has the same appearance, and its answer is the first one's with its own
values. Nothing is guessed: the texts are compared byte by byte, and a pod that fits nowhere is read
by itself.

This saves decoding and comparing some 5 KB of JSON a pod. What a pod is answered does not depend on
it; a test answers random requests with and without it. The same TApp's pods come again at its next
sync, so what was found is remembered for a while (`Memory`), and compared with anew.
"""

import re
import threading
from collections import OrderedDict

from tapp.appearance import Appearance
from tapp.objects import NOTHING, PodMeta, PodObject
from tapp.observe import Pod
from tapp.pattern import ABSENT, NAME, NODE, RECORD, TOKEN, Pattern, Values
from tapp.vocabulary import IN_PLACE_UPDATE

_GROUPS = 8
"""How many appearances a request adds, and leaves to the next; what fits none is read by itself."""

_NODE = b'"nodeName":"'
_TOKEN = b"kube-api-access-"
_TOKEN_LENGTH = len(_TOKEN) + 5
_RECORD = f'"{IN_PLACE_UPDATE}":"'.encode()
_QUOTE, _QUOTE_APPLIED = b'\\"', b'\\\\\\"'
_PLAIN = re.compile(r"[\w.-]+", re.ASCII)
_NEAR = 256
"""How far from its place in the pod before a value is looked for first."""


class _Group:
    """Pods that look like the first one."""

    __slots__ = ("format", "look", "pick", "size", "spoken_of", "unclear")

    def __init__(
        self, look: Appearance, text: bytes, values: Values, instances: re.Pattern[bytes]
    ) -> None:
        self.look = look
        self.size = len(text)
        pattern = Pattern(text, values)
        self.format, self.pick = pattern.format, pattern.pick
        # A pod whose name stands in the common text cannot be told from that text.
        self.spoken_of = {name for piece in pattern.common for name in instances.findall(piece)}
        self.unclear = bool(look.odd) or any(_TOKEN in piece for piece in pattern.common)
        if not self.unclear:
            read = (*look.images, *look.images.values(), look.template_hash, look.uniq_hash)
            own = (values[NAME].decode(), values[TOKEN].decode())
            self.unclear = any(value in said for value in own for said in read if said)


_Places = tuple[int, int, int]
"""Where the node, the token and the record stood in the last pod; -1 where it had none."""
_NOWHERE: _Places = (-1, -1, -1)


class Memory:
    """The groups of the last requests, by TApp, as far as their texts are small.

    They are hints: whether a pod looks so is decided by its text, never by whose it is.
    """

    def __init__(self, limit: int) -> None:
        """`limit` is the sum of the texts' lengths in bytes; in memory they take 12 times that."""
        self._limit = limit
        self._size = 0
        self._held: OrderedDict[str, tuple[list[_Group], _Places]] = OrderedDict()
        self._lock = threading.Lock()

    def recall(self, app: str) -> tuple[list[_Group], _Places]:
        """The groups of a TApp's last request, in a new list, and the places in its last pod."""
        groups, places = self._held.get(app, ((), _NOWHERE))
        return list(groups), places

    def keep(self, app: str, groups: list[_Group], places: _Places) -> None:
        """Remembers these groups instead, and forgets those of TApps that did not come for long.

        Groups of more than the limit are not remembered.
        """
        size = sum(item.size for item in groups)
        with self._lock:
            before, _ = self._held.pop(app, ([], _NOWHERE))
            self._size -= sum(item.size for item in before)
            if size > self._limit:
                return
            self._held[app] = groups, places
            self._size += size
            while self._size > self._limit:
                _, (oldest, _) = self._held.popitem(last=False)
                self._size -= sum(item.size for item in oldest)

    def cache_clear(self) -> None:
        """Forgets all."""
        with self._lock:
            self._held.clear()
            self._size = 0


MEMORY = Memory(4 << 20)


class Looks:
    """The appearances of one request's pods."""

    def __init__(self, namespace: str, name: str, groups: int = _GROUPS) -> None:
        """The TApp's namespace and name; with `groups=0` every pod is read by itself."""
        self._app = f"{namespace}/{name}"
        self._prefix = f"{name}-".encode()
        self._number_at = len(self._prefix)
        self._instances = re.compile(re.escape(self._prefix) + rb"\d+")
        # A name that JSON escapes stands nowhere as it is.
        self._most = groups if _PLAIN.fullmatch(name) else 0
        self._groups, self._places = MEMORY.recall(self._app) if self._most else ([], _NOWHERE)
        self._used: set[_Group] = set()
        self._last: _Group | None = None

    def observe(self, pod: PodObject) -> Pod:
        """The pod with its appearance, which it shares with the pods that look alike.

        Raises:
            msgspec.DecodeError: a part of it is no JSON.
            UnicodeDecodeError: a part of it is no UTF-8.
        """
        meta = pod.metadata
        name = meta.name.encode()
        number = name[self._number_at :]
        instance = number.isdigit() and name.startswith(self._prefix)
        if not instance or pod.spec is NOTHING or not self._most:
            return Pod(pod, Appearance(pod))  # what is no instance's may be called anything
        text = b"\n".join((meta.labels, meta.annotations, pod.spec, meta.finalizers))
        if self._groups:
            values = self._values_near(name, number, text)
            group = self._group(meta, text, values)
            if group is not None and values[NODE].isascii() and values[RECORD].isascii():
                return Pod(pod, group.look, values)
        if not text.isascii():
            text.decode()  # what is no UTF-8 is refused, though it stood in a pod's own values
        values = self._values_anywhere(name, number, text)
        group = self._group(meta, text, values)
        if group is not None:
            return Pod(pod, group.look, values)
        look = Appearance(pod)
        if len(self._used) >= self._most:
            return Pod(pod, look)
        group = _Group(look, text, values, self._instances)
        if group.unclear:
            return Pod(pod, look)
        self._groups.insert(0, group)
        self._used.add(group)
        look.shared = True
        return Pod(pod, look, values)

    def remember(self) -> None:
        """Keeps what this request has shown for the TApp's next one."""
        if self._used:
            kept = [group for group in self._groups if group in self._used]
            MEMORY.keep(self._app, kept[: self._most], self._places)

    def _group(self, meta: PodMeta, text: bytes, values: Values) -> _Group | None:
        """The group that a pod looks like; it comes first next time, as its like often follows."""
        for group in self._groups:
            if (
                group.format % group.pick(values) == text
                and group.look.namespace == meta.namespace
                and values[NAME] not in group.spoken_of
            ):
                if group is not self._last:
                    self._groups.remove(group)
                    self._groups.insert(0, group)
                    self._used.add(group)
                    self._last = group
                return group
        return None

    def _values_anywhere(self, name: bytes, number: bytes, text: bytes) -> Values:
        """The pod's own values, wherever they stand."""
        self._places = text.find(_NODE), text.find(_TOKEN), text.find(_RECORD)
        return name, number, *_values(text, *self._places)

    def _values_near(self, name: bytes, number: bytes, text: bytes) -> Values:
        """The same in half the time, searched only near the places of the pod before.

        Other values than its own are no harm: with them the pod fits no group.
        """
        node_at, token_at, record_at = self._places
        if node_at >= 0 and not text.startswith(_NODE, node_at):
            node_at = text.find(_NODE, max(0, node_at - _NEAR), node_at + _NEAR)
        if token_at >= 0 and not text.startswith(_TOKEN, token_at):
            token_at = text.find(_TOKEN, max(0, token_at - _NEAR), token_at + _NEAR)
        if record_at >= 0 and not text.startswith(_RECORD, record_at):
            record_at = text.find(_RECORD, max(0, record_at - _NEAR), record_at + _NEAR)
        self._places = node_at, token_at, record_at
        return name, number, *_values(text, node_at, token_at, record_at)


def _values(
    text: bytes, node_at: int, token_at: int, record_at: int
) -> tuple[bytes, bytes, bytes, bytes]:
    """Node, token, record and the record once more, at these places; -1 where there is none.

    What JSON escapes in another way than we would is no value, and stays in the common text.
    """
    node = token = record = applied = ABSENT
    if node_at >= 0:
        start = node_at + len(_NODE)
        node = text[start : text.find(b'"', start)]
        if not node or b"\\" in node:
            node = ABSENT
    if token_at >= 0:
        token = text[token_at : token_at + _TOKEN_LENGTH]
        if not token[len(_TOKEN) :].isalnum():
            token = ABSENT
    if record_at >= 0:
        start = record_at + len(_RECORD)
        record = text[start : text.find(b'}"', start) + 1]
        applied = record.replace(_QUOTE, _QUOTE_APPLIED)
        quotes = (len(applied) - len(record)) // (len(_QUOTE_APPLIED) - len(_QUOTE))
        plain = record.count(b'"') == record.count(b"\\") == quotes
        if not (plain and record.startswith(b'{\\"')):
            record = applied = ABSENT  # it ends elsewhere, or holds more than a record of ours
    return node, token, record, applied
