"""Draws requests that are almost valid, as Hypothesis strategies, so that findings are minimized.

`nearly_right` changes a valid request, `scratched` changes bytes, and `noise` draws any bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import msgspec
from hypothesis import strategies as st

from tests.builders import Document
from tests.cost.fields import spec_schema

RAW = [
    *(b"NaN", b"-Infinity", b"1e999", b"-0", b"-0.0", b"1E400", b"30.0", b"1e2", b"01", b"9" * 400),
    *(b"-9223372036854775809", b"18446744073709551616", b"", b"{", b"]", b"tru"),
    *(b'"\\ud800"', b'"\\udc00\\ud800"', b'"\xff\xfe"', b'"\xed\xa0\x80"', b'"a\xffb"', b'"\x00"'),
    *(b'"\\u0000"', b'"\\x"', b'{"name":"a","name":"b"}', b'{"\\u006eame":"web-1"}'),
    *(b"[" * 300 + b"]" * 300, b'{"a":' * 500 + b"1" + b"}" * 500, b"[" * 20_000 + b"]" * 20_000),
    b'{"metadata":{"name":"web-0"},"metadata":null}',
]
"""Bytes in place of values, most of which no JSON encoder writes."""
TEXTS = [
    *("", " ", "0", "1", "-1", "01", "a", "ä", "\U0001f600", "\x00", "null", "{}", "[]", '"', "{"),
    *("web", "web-0", "web-1", "web-10", "web-01", "web-", "web-9999999999", "web-0.web", "shop"),
    *("default", "canary", "Killed", "Running", "Succ", "Failed", "Succeeded", "Unknown", "True"),
    *("100%", "50%", "-1%", "0%", "%", "%b", "%%", "%(x)s", "1e3", "500m", "1Gi", "0x10", "\u0661"),
    *("2026-01-05T10:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01"),
    *("9999-12-31T23:59:59-23:59", "2026-01-05T10:00:00", "2026-W01-1", "9" * 5000),
    *('{"revision":5}', '{"containers":{"app":{"id":1}}}', '{"containers":{"app":{}}}', "v1-x"),
    *("v1-", "12345678901234567890", "kube-api-access-abcde", '"nodeName":"node-1"', "$(tapp.x)"),
    *("orphan", "foregroundDeletion", "Always", "OnFailure", "Never", "Delete", "Retain"),
]
NUMBERS = [
    *(0, 1, -1, 2, 10, 2**31 - 1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 0.5, -1.5, 1e308)
]
KEYS = [
    *("name", "metadata", "spec", "labels", "annotations", "image", "containers", "", "Pod.v1"),
    *("nodeName", "namespace", "apps.tkestack.io/in-place-update", "a", "%b", "web-1", "status"),
]
PIECES = ['"', "\\", "%", "%b", "1", "web-1", "ä", "\n", " ", "-", "0", ""]

texts, keys = st.sampled_from(TEXTS), st.sampled_from(KEYS)
values = st.recursive(
    st.sampled_from([None, True, False, *NUMBERS, *TEXTS]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=4,
)
"""Any JSON values, for places that may have any value."""


def by_schema(schema: Document) -> st.SearchStrategy[Any]:
    """Returns a strategy for values that fit a JSON schema; one in twelve does not."""
    return st.integers(0, 11).flatmap(lambda odd: values if odd == 11 else _fitting(schema))


def _fitting(schema: Document) -> st.SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    match schema.get("type"):
        case "object" if "properties" in schema:
            fields = {name: by_schema(field) for name, field in schema["properties"].items()}
            return st.fixed_dictionaries({}, optional=fields)
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            inner = by_schema(schema["additionalProperties"])
            return st.dictionaries(texts, inner, max_size=3)
        case "array":
            return st.lists(by_schema(schema["items"]), max_size=3)
        case "integer":
            return st.integers(schema.get("minimum"), schema.get("maximum"))
        case "boolean":
            return st.booleans()
    if schema.get("x-kubernetes-int-or-string"):
        return st.integers(0, 10) | texts
    return texts


specs = by_schema(spec_schema())


@st.composite
def nearly_right(draw: st.DrawFn, document: Document) -> bytes:
    """Draws the bytes of a request: the document with up to eight changes, in one of several JSON
    styles.
    """
    document = msgspec.json.decode(msgspec.json.encode(document))
    if draw(st.integers(0, 7)) == 0 and "parent" in document:
        spec = draw(specs)
        if isinstance(spec, dict):
            spec = {**document["parent"]["spec"], **spec}
        document["parent"]["spec"] = spec
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 2, 3, 5, 8]))):
        _change(draw, document)
    text = msgspec.json.encode(document)
    match draw(st.integers(0, 19)):
        case 0:
            text = text.replace(b":", b": ").replace(b",", b",\n\t")
        case 1:
            text = text.replace(b'":"', b'" : "', draw(st.integers(0, 200)))
        case 2:
            text = draw(scratched(text))
    return text


def _place(draw: st.DrawFn, document: Any) -> Iterator[tuple[Any, Any]]:
    """Yields the objects or lists and the keys on a random path into the document, from the outside
    in.
    """
    while isinstance(document, dict | list) and document:
        among = list(document) if isinstance(document, dict) else range(len(document))
        key = draw(st.sampled_from(among))
        yield document, key
        if draw(st.integers(0, 3)) == 0:
            return
        document = document[key]


_KINDS = [*["value"] * 4, "raw", "gone", "gone", "twice", "other", "other", *["near"] * 4]


def _change(draw: st.DrawFn, document: Document) -> None:
    # The service hardly reads `controller` and `related`, so most changes go elsewhere.
    parts = [part for part in ("parent", "children", "children", "object") if part in document]
    root = document.get(draw(st.sampled_from(["", *parts, *parts])))
    places = list(_place(draw, root or document))
    if not places:
        return
    holder, key = places[-1]
    match draw(st.sampled_from(_KINDS)):
        case "value":
            holder[key] = draw(values)
        case "raw":
            holder[key] = msgspec.Raw(draw(st.sampled_from(RAW)))
        case "gone":
            del holder[key]
        case "twice" if isinstance(holder, list):
            holder.insert(draw(st.integers(0, len(holder))), deepcopy(holder[key]))
        case "twice" if len(places) > 1:
            outer, name = places[-2]
            value = holder[key] if draw(st.booleans()) else draw(values)
            outer[name] = _twice(holder, key, value, escaped=draw(st.booleans()))
        case "other":
            other, name = [*_place(draw, document)][-1]
            holder[key] = deepcopy(other[name])
        case _:
            holder[key] = draw(_near(holder[key]))


def _twice(holder: Document, key: str, value: Any, *, escaped: bool) -> msgspec.Raw:
    """Returns the object with `key` a second time, with the other value.

    If `escaped`, every letter of the second key is written as a JSON escape.
    """
    again = "".join(f"\\u{ord(each):04x}" for each in key if ord(each) < 2**16) if escaped else key
    name = f'"{again}"'.encode() if escaped else msgspec.json.encode(key)
    pair = name + b":" + msgspec.json.encode(value)
    return msgspec.Raw(msgspec.json.encode(holder)[:-1] + b"," + pair + b"}")


def _near(value: Any) -> st.SearchStrategy[Any]:
    """Returns a strategy for small changes of the value, or for the same value in another type."""
    wrapped = st.sampled_from([[value], {"a": value}, [value, value]])
    match value:
        case None | bool():
            return st.just(not value)
        case int() | float():
            return st.sampled_from([value + 1, value - 1, -value, value * 10, str(value)])
        case str():
            at = st.tuples(st.integers(0, len(value)), st.sampled_from(PIECES), st.integers(0, 1))
            nudged = at.map(lambda it: value[: it[0]] + it[1] + value[it[0] + it[2] :])
            return nudged | wrapped | st.sampled_from([value.upper(), value * 3]) | _parsed(value)
        case dict():
            more = st.tuples(keys, values).map(lambda pair: {**value, pair[0]: pair[1]})
            return more | wrapped | st.just(_as_text(value))
        case list():
            return values.map(lambda more: [*value, more]) | st.permutations(value)
    return wrapped


def _parsed(text: str) -> st.SearchStrategy[Any]:
    """Returns a strategy for the JSON in a text, such as a record in an annotation, or for the text
    itself.
    """
    try:
        return st.just(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError):
        return st.just(text)


def _as_text(value: Any) -> str:
    return msgspec.json.encode(value).decode("utf-8", "replace")


_SIGNS = [bytes([each]) for each in b'{}[],:"\\ 1']


@st.composite
def scratched(draw: st.DrawFn, text: bytes) -> bytes:
    """Draws the text with bytes lost, doubled, or inserted at up to four places."""
    for _ in range(draw(st.sampled_from([1, 1, 2, 4]))):
        at = draw(st.integers(0, len(text)))
        end = at + draw(st.sampled_from([1, 1, 2, 8, 100]))
        match draw(st.integers(0, 4)):
            case 0:
                text = text[:at] + draw(st.binary(min_size=1, max_size=2)) + text[at + 1 :]
            case 1:
                text = text[:at] + text[end:]
            case 2:
                text = text[:end] + text[at:]
            case 3:
                text = text[:at] + draw(st.sampled_from([*RAW, *_SIGNS])) + text[at:]
            case _:
                text = text[:at]
    return text


_WORDS = [*_SIGNS, b"null", b"\xef\xbb\xbf", b"{}", *RAW]
_WORDS += [b'"parent"', b'"children"', b'"Pod.v1"', b'"metadata"', b'"name"', b'"spec"']
noise = st.binary(max_size=300) | st.lists(st.sampled_from(_WORDS), max_size=25).map(b"".join)
"""Bytes with almost no meaning."""

odd_http = st.fixed_dictionaries(
    {
        "REQUEST_METHOD": st.sampled_from(
            ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "FOO"]
        ),
        "CONTENT_TYPE": st.sampled_from(
            ["", "text/plain", "application/json; charset=latin-1", "a", "multipart/form-data"]
        ),
    },
    optional={
        "CONTENT_LENGTH": st.sampled_from(["", "-1", "x", "0", "1e3", "9" * 20]),
        "HTTP_CONTENT_ENCODING": st.sampled_from(["gzip", "identity", "", "\xff"]),
        "HTTP_AUTHORIZATION": st.sampled_from(["Bearer x", "Basic eDp5", "\xff", "Digest a=b"]),
    },
)
"""WSGI variables that no normal client sends."""
