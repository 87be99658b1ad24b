"""The release's manifests, as `kubectl apply` takes them."""

from __future__ import annotations

from pathlib import Path

import yaml

from . import metacontroller
from .kustomize import Document, composed

WHOLE = "install-with-metacontroller.yaml"


def write_manifests(dist: Path, image: str) -> None:
    """install.yaml, and the same after Metacontroller's own objects."""
    ours = composed((), image)
    write(dist / "install.yaml", ours)
    write(dist / WHOLE, [*metacontroller.manifests(), *ours])


def write(file: Path, documents: list[Document]) -> None:
    """One YAML file of several objects."""
    text = yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=False, width=100)
    file.write_text(text, encoding="utf-8")
