"""TApps from files: what `-f` names."""

import sys
from pathlib import Path

from kubectl_tapp.errors import CommandError
from kubectl_tapp.observed import Document

_KIND, _GROUP = "TApp", "apps.tkestack.io/"


def read_tapp(path: str, name: str | None = None) -> Document:
    """The TApp in a file of YAML or JSON documents.

    Args:
        path: the file; `-` for standard input.
        name: which TApp, where there may be several; None for the only one.

    Raises:
        CommandError: it cannot be read, is not YAML, or has no such TApp.
    """
    documents = _documents(path)
    found = [each for each in documents if _is_tapp(each)]
    if not found:
        kinds = sorted({_kind(each) for each in documents})
        there = f"only {', '.join(kinds)}" if kinds else "nothing"
        raise CommandError(f"{_called(path)} has no TApp: there is {there}")
    for each in found:
        if not isinstance(each.get("metadata"), dict) or not each["metadata"].get("name"):
            raise CommandError(f"{_called(path)}: a TApp without metadata.name")
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
    import yaml  # noqa: PLC0415 - it costs start time

    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise CommandError(f"{_called(path)} cannot be read: {why}") from None
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        documents = list(yaml.load_all(text, loader))
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


def _is_tapp(document: Document) -> bool:
    group = str(document.get("apiVersion")).startswith(_GROUP)
    return document.get("kind") == _KIND and group


def _kind(document: Document) -> str:
    return str(document.get("kind") or "something without a kind")


def _called(path: str) -> str:
    return "standard input" if path == "-" else path
