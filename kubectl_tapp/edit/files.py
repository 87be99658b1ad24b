"""Reads TApps from manifest files, for `-f` and `--from`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.base.manifests import ManifestError, read_manifests
from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.shapes import shape_error

_KIND, _GROUP, _VERSION = "TApp", "apps.tkestack.io/", "apps.tkestack.io/v1"


def read_tapp(path: str, name: str | None = None) -> Document:
    """Reads a file and returns the TApp with this name. If `name` is None, returns the only TApp in
    the file.

    The path `-` stands for standard input. Raises CommandError if the file cannot be read, or
    unless it has exactly one such TApp.
    """
    documents = _documents(path)
    found = [each for each in documents if _is_tapp(each)]
    if not found:
        kinds = sorted({str(each.get("kind") or "an object without a kind") for each in documents})
        there = f"only {', '.join(kinds)}" if kinds else "nothing"
        raise CommandError(f"{_display_name(path)} has no TApp: there is {there}")
    for each in found:
        metadata = each.get("metadata")
        if not isinstance(metadata, dict) or not metadata.get("name"):
            raise CommandError(f"{_display_name(path)} has a TApp without metadata.name")
        if (version := each["apiVersion"]) != _VERSION:
            known = f"the only known version is {_VERSION}"
            raise CommandError(f"{_display_name(path)} has a TApp of apiVersion {version}: {known}")
        if not metadata.get("namespace"):
            metadata.pop("namespace", None)  # kubectl treats an empty namespace as a missing one
        if wrong := shape_error(each):
            raise CommandError(f"{_display_name(path)}: {wrong}")
    if name is not None:
        named = [each for each in found if each["metadata"]["name"] == name]
        if not named:
            names = ", ".join(each["metadata"]["name"] for each in found)
            raise CommandError(f"{_display_name(path)} has no TApp {name}: it has {names}")
        found = named
    if len(found) > 1:
        names = ", ".join(each["metadata"]["name"] for each in found)
        raise CommandError(f"{_display_name(path)} has several TApps ({names}): name one")
    return found[0]


def _documents(path: str) -> list[Document]:
    try:
        documents = read_manifests(_content(path))
    except OSError as error:
        raise CommandError(f"{_display_name(path)} cannot be read: {error.strerror}") from None
    except ManifestError as error:
        raise CommandError(f"{_display_name(path)} is not YAML: {error}") from None
    return list(_objects(path, documents))


def _content(path: str) -> bytes | str:
    if path != "-":
        return Path(path).read_bytes()
    # A program that runs this code, such as a test, may have replaced sys.stdin by a text stream
    # without a buffer.
    buffer = getattr(sys.stdin, "buffer", None)
    return sys.stdin.read() if buffer is None else buffer.read()


def _objects(path: str, documents: list[Any]) -> Iterator[Document]:
    """Yields the objects in these documents, including the items of lists of any kind.

    `path` is the path of the file, for messages. Raises CommandError if a document is not an
    object.
    """
    for each in documents:
        if not isinstance(each, dict):
            kind = type(each).__name__
            raise CommandError(f"{_display_name(path)} is not a manifest: it contains {kind}")
        if isinstance(items := each.get("items"), list):
            yield from _objects(path, [item for item in items if item is not None])
        else:
            yield each


def _is_tapp(document: Document) -> bool:
    group = str(document.get("apiVersion")).startswith(_GROUP)
    return document.get("kind") == _KIND and group


def _display_name(path: str) -> str:
    return "standard input" if path == "-" else path
