"""Copies the Helm chart charts/tapp for a release, with the version, the image and its origin."""

import shutil
from pathlib import Path

import yaml

from .kustomize import ROOT, Document, parts

# The files in its files/ are links to kustomize's files; copying follows them
CHART = ROOT / "charts" / "tapp"
ICON = "docs/img/icon.svg"
_IMAGE = """\
  registry: ""
  repository: ""
  # Empty: the chart's appVersion
  tag: ""
  # A digest such as sha256:...; it overrides the tag
  digest: ""
"""
"""The lines of values.yaml that hold the image."""


def copy(directory: Path, version: str, image: str, home: str = "") -> None:
    """Copies the Helm chart to a directory that does not exist yet, and sets version and image in
    it.

    `home` is the URL of the project's page; empty leaves out the fields that need it.
    """
    shutil.copytree(CHART, directory, ignore=shutil.ignore_patterns("charts", "Chart.lock"))
    described = directory / "Chart.yaml"
    content = yaml.safe_load(described.read_text(encoding="utf-8"))
    content |= {"version": version, "appVersion": version, **_origin(version, home)}
    described.write_text(yaml.safe_dump(content, sort_keys=False, width=100), encoding="utf-8")
    values = directory / "values.yaml"
    text = values.read_text(encoding="utf-8")
    head, found, rest = text.partition(_IMAGE)
    assert found, "charts/tapp/values.yaml has its image elsewhere"  # noqa: S101 - ours
    values.write_text(head + _lines(split(image)) + rest, encoding="utf-8")


def _origin(version: str, home: str) -> Document:
    """Returns the fields of Chart.yaml that say where a published release comes from.

    The result is empty if `home`, the URL of the project's page, is empty.
    """
    if not home:
        return {}
    return {
        "home": home,
        "sources": [home],
        "icon": f"{home}/raw/v{version}/{ICON}",
        "maintainers": [{"name": "The maintainers of TApp", "url": home}],
    }


def split(image: str) -> Document:
    """Returns registry, repository, tag and digest of an image, for the value `image` of the chart.

    A part that the image does not have is empty.
    """
    named = parts(image)
    first, slash, rest = named["newName"].partition("/")
    # Docker's rule: the first part is a registry only if it has a dot or a port, or is localhost.
    registry = first if slash and ("." in first or ":" in first or first == "localhost") else ""
    return {
        "registry": registry,
        "repository": rest if registry else named["newName"],
        "tag": named.get("newTag", ""),
        "digest": named.get("digest", ""),
    }


def _lines(image: Document) -> str:
    lines = _IMAGE
    for key, value in image.items():
        lines = lines.replace(f'  {key}: ""', f'  {key}: "{value}"')
    return lines
