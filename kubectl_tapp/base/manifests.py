"""Parses manifest files exactly as kubectl does, so that a plan sees what an apply would send.

The entry point is `read_manifests`. kubectl parses a file as JSON if it begins with a brace.
Otherwise it splits the file into YAML documents at the lines that begin with `---`, and go-yaml v2
parses each document. Plain scalars have the types of YAML 1.1 and Go's notation of numbers
(`81111e1`, `0o17`, `1_000`). Times and numbers to the base of 60 stay texts. The result becomes
JSON, in which keys are texts and 1.0 is 1.

Sources: k8s.io/apimachinery, util/yaml; go.yaml.in/yaml/v2, resolve.go and decode.go;
sigs.k8s.io/yaml, `convertToJSONableObject`.
"""

import base64
import codecs
import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import yaml

from kubectl_tapp.base.scalars import LEAST_INT, MOST_INT, float_key_text, resolve_scalar

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip
"""The byte order marks that kubectl knows. Source: k8s.io/cli-runtime, `FileVisitor.Visit`."""
_TAG = "tag:yaml.org,2002:"
_PLAIN = "plain"  # The tag that this module gives to a scalar without quotes and without a tag
_TIME = re.compile(
    r"\d{4}-\d\d?-\d\d?(?:[Tt]\d\d?:\d\d?:\d\d?(?:[.,]\d+)?(?:Z|[-+]\d\d:\d\d)"
    r"| \d\d?:\d\d?:\d\d?(?:[.,]\d+)?)?",
    re.ASCII,
)
_EXPONENT = 1e21  # From this number on, Go writes floats into JSON with an exponent


class ManifestError(ValueError):
    """The error that a file is one that kubectl would refuse. The message says why, and names the
    line if it is known.
    """


def read_manifests(data: bytes | str) -> list[Any]:
    """Parses a file and returns its documents as JSON values, without empty documents.

    Raises ManifestError if kubectl would refuse the file.
    """
    text = data if isinstance(data, str) else _decoded(data)
    if "\0" in text:
        raise ManifestError(
            "it contains NUL characters, as UTF-16 without a byte order mark does; save it as UTF-8"
        )
    try:
        documents = list(_documents(text))
        return [_as_json(each) for each in documents if each is not None]
    except RecursionError:
        raise ManifestError("it is nested too deeply") from None


def _decoded(data: bytes) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data.removeprefix(mark).decode(encoding, "replace")
    return data.decode("utf-8", "replace")


def _documents(text: str) -> Iterator[Any]:
    """Yields the parsed documents of a file; an empty document is None.

    A file that begins with a brace may still be YAML, and it may continue as YAML after its first
    JSON object.
    """
    if text.lstrip().startswith("{"):
        found, rest = _json_documents(text)
        yield from found
        if rest is None:
            return
        text = rest
    lines, first = list[str](), 0
    for number, line in enumerate(text.split("\n")):
        if line.startswith("---"):
            if (more := line[3:].strip()) and not more.startswith("#"):
                raise ManifestError(f"invalid document separator: {more} (line {number + 1})")
            if lines:
                # The empty last line lets a block scalar at the end of a document keep its line
                # break.
                yield _yaml_document([*lines, ""], first)
            lines, first = [], number + 1
            continue
        # Concatenated files have a byte order mark at the beginning of each document.
        lines.append(line.removesuffix("\r") if lines else _first_line(line))
    yield _yaml_document(lines, first)


def _first_line(line: str) -> str:
    return line.removesuffix("\r").removeprefix("\ufeff")


def _json_documents(text: str) -> tuple[list[Any], str | None]:
    """Returns the JSON objects at the beginning of a text, and the rest of the text.

    The rest is None if the complete text is JSON. Raises ManifestError if text that is no JSON
    follows the second object.
    """
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    found, at = list[Any](), 0
    while True:
        start = len(text) - len(text[at:].lstrip(" \t\r\n"))
        if start == len(text):
            return found, None
        try:
            value, at = decoder.raw_decode(text, start)
        except ValueError as error:
            # kubectl parses the rest as YAML if the text stops being JSON at the first or the
            # second object, but not later.
            if len(found) > 1:
                raise ManifestError(f"it is not JSON: {error}") from None
            return found, text[at:].lstrip(" \t\r").removeprefix("\n")
        found.append(value)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


class _NodeError(Exception):
    """The error that kubectl would refuse a node of a YAML document. The message has the reason.

    `line` is the line of the node in its document, counted from 0.
    """

    def __init__(self, message: str, node: yaml.Node) -> None:
        super().__init__(message)
        self.line: int = node.start_mark.line


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A PyYAML loader that leaves the types of scalars without quotes and tags undecided.

    `resolve_scalar` decides them later, because go-yaml has other rules than PyYAML.
    """

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """Returns the tag of a node without an explicit tag: `_PLAIN` for a scalar without quotes.

        PyYAML calls this method.
        """
        if kind is yaml.ScalarNode and implicit[0]:
            return _PLAIN
        return super().resolve(kind, value, (False, False))


def _yaml_document(lines: list[str], first: int) -> Any:
    """Parses the first YAML document in these lines and returns its value; None if it is empty.

    go-yaml ignores further documents in the same text, so this function ignores them, too. `first`
    is the number of lines of the file before these lines, for messages. Raises ManifestError if
    kubectl would refuse the document.
    """
    loader = _Loader("\n".join(lines))
    try:
        node = loader.get_node() if loader.check_node() else None
        return None if node is None else _Constructor().value(node)
    except _NodeError as error:
        raise ManifestError(f"{error} (line {first + error.line + 1})") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {first + mark.line + 1})" if mark is not None else ""
        why = getattr(error, "problem", None) or getattr(error, "reason", "it cannot be parsed")
        raise ManifestError(f"{why}{where}") from None
    finally:
        loader.dispose()


_CIRCULAR = "it contains a circular alias: an alias inside the value that it repeats"


class _Constructor:
    """Converts the nodes of one YAML document to values, with the limits of go-yaml's decoder.

    In PyYAML's tree, an alias is the same node object at several places. The constructor converts
    this node at each place and counts the conversions, because nested aliases can make a small file
    enormous.
    """

    def __init__(self) -> None:
        # The number of converted nodes, and the number of those conversions that repeat a node
        # because of an alias
        self._node_count = self._repeated_count = 0
        self._in_progress = set[int]()  # ids of the nodes whose conversion has begun and not ended
        self._converted = set[int]()  # ids of the nodes that were converted at least once

    def value(self, node: yaml.Node, *, repeated: bool = False) -> Any:
        """Returns the value of a node; raises _NodeError if kubectl would refuse the node.

        `repeated` is True inside a node that an alias repeats, so that the limit of repeated nodes
        counts this node.
        """
        repeated = repeated or id(node) in self._converted
        self._count(node, repeated=repeated)
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        if id(node) in self._in_progress:
            raise _NodeError(_CIRCULAR, node)
        self._in_progress.add(id(node))
        if isinstance(node, yaml.MappingNode):
            found: Any = {}
            self._fill(found, node, repeated=repeated)
        else:
            found = [self.value(each, repeated=repeated) for each in node.value]
        self._in_progress.discard(id(node))
        self._converted.add(id(node))
        return found

    def _fill(self, found: dict[str, Any], node: yaml.MappingNode, *, repeated: bool) -> None:
        """Adds the entries of a mapping node to the mapping `found`.

        The entries of a merge key (`<<`) overwrite earlier entries, as in go-yaml v2. `repeated` is
        True inside a node that an alias repeats.
        """
        for key, item in node.value:
            if isinstance(key, yaml.ScalarNode) and _is_merge(key):
                for each in _merged_mappings(item):
                    self._merge(found, each, repeated=repeated)
            else:
                name = _key_text(self.value(key, repeated=repeated), key)
                found[name] = self.value(item, repeated=repeated)

    def _merge(self, found: dict[str, Any], node: yaml.MappingNode, *, repeated: bool) -> None:
        """Adds the entries of the mapping `node`, to which a merge key (`<<`) refers, to the
        mapping `found`.

        `repeated` is True inside a node that an alias repeats.
        """
        if id(node) in self._in_progress:
            raise _NodeError(_CIRCULAR, node)
        repeated = repeated or id(node) in self._converted
        self._count(node, repeated=repeated)
        self._in_progress.add(id(node))
        self._fill(found, node, repeated=repeated)
        self._in_progress.discard(id(node))
        self._converted.add(id(node))

    def _count(self, node: yaml.Node, *, repeated: bool) -> None:
        """Counts a node. Raises _NodeError if aliases produce most of a large document.

        The limits are those of go-yaml: the allowed share of repeated nodes falls from 99% to 10%
        as the document grows from 400,000 to 4,000,000 nodes. `repeated` is True for a node that an
        alias repeats.
        """
        self._node_count += 1
        self._repeated_count += repeated
        if self._repeated_count > 100 and self._node_count > 1000:  # noqa: PLR2004 - go-yaml's numbers
            over = min(max((self._node_count - 400_000) / 3_600_000, 0.0), 1.0)
            if self._repeated_count / self._node_count > 0.99 - 0.89 * over:
                raise _NodeError("the document repeats too many values by aliases", node)


def _is_merge(node: yaml.ScalarNode) -> bool:
    return node.value == "<<" and node.tag in (_PLAIN, _TAG + "merge")


def _merged_mappings(node: yaml.Node) -> list[yaml.MappingNode]:
    """Returns the mappings that the value of a merge key (`<<`) names.

    The mappings come in the order in which they have to be added: if two have the same key, the
    entry of the later one wins. Raises _NodeError if the value is neither a mapping nor a list of
    mappings.
    """
    nodes = node.value[::-1] if isinstance(node, yaml.SequenceNode) else [node]
    if not all(isinstance(each, yaml.MappingNode) for each in nodes):
        raise _NodeError("a merge key needs a mapping or a list of mappings", node)
    return list(nodes)


def _key_text(value: Any, node: yaml.Node) -> str:
    """Returns a mapping key as the text that kubectl writes into JSON: `3`, `true`, `1e+06`.

    Raises _NodeError if the key is neither a text nor a number nor a boolean.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return float_key_text(value)
    if isinstance(value, int) and value <= MOST_INT:
        return str(value)
    raise _NodeError("the key is neither a text nor a number nor a boolean", node)


def _scalar(node: yaml.ScalarNode) -> Any:
    tag, text = node.tag, node.value
    if tag == _PLAIN:
        return resolve_scalar(text)
    kind = tag.removeprefix(_TAG)
    if kind == "binary":
        try:
            data = base64.b64decode(text.replace("\n", ""), validate=True)
        except ValueError:
            raise _tag_error("!!binary", node) from None
        return data.decode("utf-8", "replace")
    if kind in ("bool", "int", "float", "null"):
        value = resolve_scalar(text)
        if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, _TYPES[kind]) or (kind == "int" and isinstance(value, bool)):
            raise _tag_error(f"!!{kind}", node)
        return value
    if kind == "timestamp" and not _TIME.fullmatch(text):
        raise _tag_error("!!timestamp", node)
    return text


_TYPES: dict[str, type] = {"bool": bool, "int": int, "float": float, "null": type(None)}


def _tag_error(tag: str, node: yaml.ScalarNode) -> _NodeError:
    return _NodeError(f"{node.value!r} is no {tag}", node)


def _as_json(value: Any) -> Any:
    """Returns a value as kubectl sends it in JSON: a float without a fraction becomes an integer.

    Raises ManifestError if the value contains a number that JSON does not have.
    """
    if isinstance(value, dict):
        return {_without_surrogates(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    if isinstance(value, str):
        return _without_surrogates(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ManifestError(f"JSON has no number {value}")
        if value.is_integer() and abs(value) < _EXPONENT:
            # Go writes the shortest digits that identify the float, followed by zeros. `int(value)`
            # would give the exact binary value instead.
            value = int(Decimal(repr(value)))
    if isinstance(value, int) and not LEAST_INT <= value <= MOST_INT:
        return float(value)
    return value


def _without_surrogates(text: str) -> str:
    """Returns the text with U+FFFD instead of each lone surrogate, which JSON escapes can
    contain.
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
