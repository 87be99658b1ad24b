"""TApps from files: what `-f` names."""

import re
import sys
from pathlib import Path
from typing import Any, ClassVar

import yaml

from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.shapes import malformed

_KIND, _GROUP = "TApp", "apps.tkestack.io/"
_MOST = 5_000_000  # Values in a file, its aliases spelled out: far more than an API server takes
_TEXT = re.compile(r"\d{4}-\d\d?-\d\d?(?:[Tt ].*)?|[-+]?\d[\d_]*(?::\d+)+(?:\.\d*)?", re.ASCII)
"""Texts for kubectl that PyYAML takes for a time, or for a number to the base of 60."""


def read_tapp(path: str, name: str | None = None) -> Document:
    """The TApp in a file (`-`: standard input), of this name or the only one; or a CommandError."""
    documents = _documents(path)
    found = [each for each in documents if _is_tapp(each)]
    if not found:
        kinds = sorted({str(each.get("kind") or "something without a kind") for each in documents})
        there = f"only {', '.join(kinds)}" if kinds else "nothing"
        raise CommandError(f"{_called(path)} has no TApp: there is {there}")
    for each in found:
        metadata = each.get("metadata")
        if not isinstance(metadata, dict) or not metadata.get("name"):
            raise CommandError(f"{_called(path)}: a TApp without metadata.name")
        if wrong := malformed(each):
            raise CommandError(f"{_called(path)}: {wrong}")
    if name is not None:
        named = [each for each in found if each["metadata"]["name"] == name]
        if not named:
            names = ", ".join(each["metadata"]["name"] for each in found)
            raise CommandError(f"{_called(path)} has no TApp {name}: it has {names}")
        found = named
    if len(found) > 1:
        names = ", ".join(each["metadata"]["name"] for each in found)
        raise CommandError(f"{_called(path)} has several TApps ({names}): name one")
    return found[0]


def _documents(path: str) -> list[Document]:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise CommandError(f"{_called(path)} cannot be read: {why}") from None
    try:
        documents = [_plain(each, path, []) for each in yaml.load_all(text, _Loader)]
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, 1,000 brackets
        raise CommandError(f"{_called(path)} is not YAML: {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark is not None else ""
        why = getattr(error, "problem", None) or "it cannot be parsed"
        raise CommandError(f"{_called(path)} is not YAML: {why}{where}") from None
    found = []
    for each in documents:
        if isinstance(each, dict) and str(each.get("kind")).endswith("List"):
            found += [item for item in each.get("items") or [] if isinstance(item, dict)]
        elif isinstance(each, dict):
            found.append(each)
        elif each is not None:
            raise CommandError(f"{_called(path)} is no manifest: it holds {type(each).__name__}")
    return found


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's, but for texts that kubectl takes for texts."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [("tag:yaml.org,2002:str", re.compile(f"(?:{_TEXT.pattern})$", re.ASCII)), *known]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def _plain(value: Any, path: str, above: list[int], count: list[int] | None = None) -> Any:
    """A document as JSON has it: keys are texts. CommandError: far too much, or it holds itself."""
    count = [0] if count is None else count
    count[0] += 1
    if id(value) in above or count[0] > _MOST:
        why = "something in it holds itself" if id(value) in above else "it is far too large"
        raise CommandError(f"{_called(path)} is no manifest: {why}")
    if isinstance(value, dict):
        inside = [*above, id(value)]
        return {_key(key): _plain(item, path, inside, count) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, path, [*above, id(value)], count) for item in value]
    return value


def _key(key: Any) -> str:
    """A key as kubectl writes it into JSON: `3`, `true`."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def _is_tapp(document: Document) -> bool:
    group = str(document.get("apiVersion")).startswith(_GROUP)
    return document.get("kind") == _KIND and group


def _called(path: str) -> str:
    return "standard input" if path == "-" else path
