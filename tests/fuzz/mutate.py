"""Almost-right requests: a document with a few changes, written as JSON in one of many ways.

Everything comes from one `random.Random`, so a seed is a request.
"""

import json
import re
from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

import msgspec

Document = dict[str, Any]

_RAW: list[bytes] = [
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-0",
    b"-0.0",
    b"1E400",
    b"30.0",
    b"1e2",
    b"01",
    b"9" * 400,
    b"-9223372036854775809",
    b"18446744073709551616",
    b'"\\ud800"',
    b'"\\udc00\\ud800"',
    b'"\xff\xfe"',
    b'"\xed\xa0\x80"',
    b'"a\xffb"',
    b'"\x00"',
    b'"\\u0000"',
    b'"\\x"',
    b"",
    b"{",
    b"]",
    b"tru",
    b"[" * 300 + b"]" * 300,
    b'{"a":' * 500 + b"1" + b"}" * 500,
    b"[" * 1100 + b"]" * 1100,
    b"[" * 20_000 + b"]" * 20_000,
    b'{"name":"a","name":"b"}',
    b'{"metadata":{"name":"web-0"},"metadata":null}',
    b'{"\\u006eame":"web-1"}',
]
_VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 10, 2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64 - 1),
    *(0.5, 1.5, -1.5, 1e-320, 1e308, "", " ", "0", "1", "-1", "01", "a", "ä", "\U0001f600", "\x00"),
    *([], {}, [None], [[]], [{}], {"": None}, {"a": None}, [None, 1, "x"], {"name": None}),
    *("web", "web-0", "web-1", "web-10", "web-01", "web-", "web-9999999999", "web-0.web", "shop"),
    *("default", "canary", "Killed", "Running", "Succ", "Failed", "Succeeded", "Unknown", "True"),
    *(
        "100%",
        "50%",
        "-1%",
        "0%",
        "%",
        "%b",
        "%%",
        "%(x)s",
        "1e3",
        "500m",
        "1Gi",
        "0x10",
        "9" * 5000,
        "\u0661",
    ),
    *("2026-01-05T10:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01"),
    *("9999-12-31T23:59:59-23:59", "2026-01-05T10:00:00", "2026-W01-1", "null", "{}", "[]", '"'),
    *("{", '{"revision":5}', '{"containers":{"app":{"id":1}}}', '{"containers":{"app":{}}}'),
    *("v1-", "v1-x", "12345678901234567890", "kube-api-access-abcde", '"nodeName":"node-1"'),
    *("orphan", "foregroundDeletion", "Always", "OnFailure", "Never", "Delete", "Retain"),
]
_KEYS = ["name", "metadata", "spec", "labels", "annotations", "image", "containers", "", "Pod.v1"]
_KEYS += ["nodeName", "namespace", "apps.tkestack.io/in-place-update", "a", "%b", "web-1", "status"]

_DUPLICATE, _ESCAPE, _PLACE = "@@twice", "@@escaped", "@@raw"
_PLACED = re.compile(rb'"@@raw(\d+)@"')
_ESCAPED = re.compile(rb'@@escaped((?:[^"\\])*)"')


def mutated(rng: Random, document: Document, big: int = 20_000) -> bytes:
    """The request's bytes after a few changes; one of `big` changes is a text of megabytes."""
    document = msgspec.json.decode(msgspec.json.encode(document))
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5, 8))):
        if rng.random() < 0.15:
            _change_every_pod(rng, document)
        else:
            _change(rng, document, big)
    try:
        text = msgspec.json.encode(document, order=rng.choice(("sorted", None)))
    except RecursionError:
        return b"[" * 100_000
    return _written(rng, text)


def _value(rng: Random) -> Any:
    value = rng.choice(_VALUES)
    return deepcopy(value) if isinstance(value, dict | list) else value


def _place(rng: Random, document: Any) -> tuple[Any, Any]:
    """A container in the document, and one of its keys."""
    holder, key = None, None
    while isinstance(document, (dict, list)) and document:
        holder = document
        key = (
            rng.choice(list(document))
            if isinstance(document, dict)
            else rng.randrange(len(document))
        )
        if rng.random() < 0.12:
            break
        document = document[key]
    return holder, key


def _change(rng: Random, document: Document, big: int) -> None:
    # `controller` and `related` are hardly read: most changes go where something is decided.
    root: Any = document
    if rng.random() < 0.9:
        root = document.get(rng.choice(("parent", "children", "children"))) or document
    if rng.random() < 0.02:
        root = {"": document}
    holder, key = _place(rng, root)
    if holder is None or (holder is root and "" in holder):
        return
    if rng.randrange(big) == 0:
        holder[key] = rng.choice('x%\\"\xe4') * 10_000_000
        return
    rng.choice(_CHANGES)(rng, holder, key, document)


def _replace(rng: Random, holder: Any, key: Any, _: Document) -> None:
    holder[key] = _value(rng)


def _raw(rng: Random, holder: Any, key: Any, _: Document) -> None:
    holder[key] = f"{_PLACE}{rng.randrange(len(_RAW))}@"


def _delete(_: Random, holder: Any, key: Any, __: Document) -> None:
    del holder[key]


def _twice(rng: Random, holder: Any, key: Any, _: Document) -> None:
    """A key, or a list's item, that stands there twice."""
    if isinstance(holder, list):
        holder.insert(rng.randrange(len(holder) + 1), deepcopy(holder[key]))
        return
    value = deepcopy(holder[key]) if rng.random() < 0.5 else _value(rng)
    if rng.random() < 0.5:  # the other one comes first
        value, holder[key] = holder[key], value
    holder[key + _DUPLICATE] = value


def _escaped(_: Random, holder: Any, key: Any, __: Document) -> None:
    if isinstance(holder, dict):
        holder[_ESCAPE + key] = holder.pop(key)
    elif isinstance(holder[key], str):
        holder[key] = _ESCAPE + holder[key]


def _renamed(rng: Random, holder: Any, key: Any, _: Document) -> None:
    if isinstance(holder, dict):
        holder[rng.choice((*_KEYS, key.upper(), key + " ", f"{key}x"))] = holder.pop(key)
    else:
        rng.shuffle(holder)


def _moved(rng: Random, holder: Any, key: Any, document: Document) -> None:
    """Something else of the same document in its place."""
    other, name = _place(rng, document)
    if other is not None:
        holder[key] = msgspec.json.decode(msgspec.json.encode(other[name]))


def _wrapped(rng: Random, holder: Any, key: Any, _: Document) -> None:
    value = holder[key]
    if isinstance(value, str) and rng.random() < 0.5:
        try:
            holder[key] = json.loads(value)
        except (ValueError, RecursionError):
            holder[key] = [value]
    else:
        ways = (
            [value],
            {"a": value},
            [value, deepcopy(value)],
            json.dumps(value),
            str(value)[:100],
        )
        holder[key] = rng.choice(ways)


def _nudged(rng: Random, holder: Any, key: Any, _: Document) -> None:
    """A small change of the same type."""
    value = holder[key]
    if isinstance(value, bool) or value is None:
        holder[key] = not value
    elif isinstance(value, int | float):
        holder[key] = rng.choice((value + 1, value - 1, -value, value * 10, float(value)))
    elif isinstance(value, str):
        at = rng.randrange(len(value) + 1)
        piece = rng.choice(('"', "\\", "%", "%b", "1", "web-1", "ä", "\n", " ", "-", "0", ""))
        holder[key] = value[:at] + piece + value[at + rng.randrange(2) :]
    elif isinstance(value, dict):
        value[rng.choice(_KEYS)] = _value(rng)
    else:
        value.append(_value(rng))


_CHANGES: list[Callable[[Random, Any, Any, Document], None]] = [
    *(_replace, _replace, _replace, _raw, _delete, _delete, _twice, _escaped, _renamed, _moved),
    *(_wrapped, _nudged, _nudged),
]


def _change_every_pod(rng: Random, document: Document) -> None:
    """The same change at the same place of every pod, so that they go on looking alike."""
    children = document.get("children")
    pods = children.get("Pod.v1") if isinstance(children, dict) else None
    if not isinstance(pods, dict) or not pods:
        return
    seed, own = rng.getrandbits(32), rng.randrange(8)
    names = list(pods)
    for index, pod in enumerate(pods.values()):
        if not isinstance(pod, dict):
            continue
        same = Random(seed)
        part = pod.get(same.choice(("spec", "metadata", "metadata", "status")))
        holder, key = _place(same, part)
        if holder is None:
            continue
        name = names[index].rpartition("/")[2]
        number = name.rpartition("-")[2]
        other = names[(index + 1) % len(names)].rpartition("/")[2]
        if own < 6:
            holder[key] = (name, number, other, f"{name}0", f"x{name}.{number}", f"{index % 2}")[
                own
            ]
        elif own == 6 and isinstance(holder[key], str):
            holder[key] = same.choice((f'{holder[key]}"%', f"{name}\\{holder[key]}", f"%{number}"))
        else:
            holder[key] = _value(same)


# --- the same document, written otherwise ---------------------------------------------------------


def _written(rng: Random, text: bytes) -> bytes:
    if b"@@" in text:
        text = text.replace(_DUPLICATE.encode() + b'"', b'"')
        text = _ESCAPED.sub(_as_escapes, text)
        text = _PLACED.sub(lambda found: _RAW[int(found[1]) % len(_RAW)], text)
    way = rng.random()
    if way < 0.05:
        text = _pretty(text, rng.randrange(4))
    elif way < 0.08:
        text = text.replace(b":", b": ").replace(b",", b",\n\t")
    elif way < 0.10:
        text = text.replace(b'":"', b'" : "', rng.randrange(200))
    elif way < 0.20:
        text = scratched(rng, text)
    return text


def _pretty(text: bytes, indent: int) -> bytes:
    try:
        return msgspec.json.format(text, indent=indent)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return text


def _as_escapes(found: re.Match[bytes]) -> bytes:
    r"""The rest of a string in JSON's escapes: `\u006eame` for `name`."""
    text = found[1].decode("utf-8", "replace")
    return "".join(f"\\u{ord(c):04x}" if ord(c) < 0xD800 else "?" for c in text).encode() + b'"'


def scratched(rng: Random, text: bytes) -> bytes:
    """Bytes turned, lost, doubled, or put in."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(text) + 1)
        end = at + rng.choice((1, 1, 2, 8, 100))
        match rng.randrange(6):
            case 0:
                text = text[:at] + rng.randbytes(1) + text[at + 1 :]
            case 1:
                text = text[:at] + text[end:]
            case 2:
                text = text[:end] + text[at:]
            case 3:
                text = text[:at] + rng.choice(_RAW) + text[at:]
            case 4:
                text = (
                    text[:at] + rng.choice((b'"', b"{", b"}", b"[", b"]", b",", b"\\")) + text[at:]
                )
            case _:
                text = text[:at] if rng.random() < 0.3 else text
    return text


def noise(rng: Random) -> bytes:
    """Bytes of no meaning, or nearly none."""
    if rng.random() < 0.4:
        return rng.randbytes(rng.choice((0, 1, 3, 10, 100, 1000)))
    pieces = [b"{", b"}", b"[", b"]", b",", b":", b'"', b"null", b"1", b" ", b"\xef\xbb\xbf", *_RAW]
    pieces += [b'"parent"', b'"children"', b'"Pod.v1"', b'"metadata"', b'"name"', b'"spec"', b"{}"]
    return b"".join(rng.choice(pieces) for _ in range(rng.randrange(1, 25)))
