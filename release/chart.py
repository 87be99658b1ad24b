"""Copies the Helm chart charts/tapp for a release, and sets its version, image and origin."""

import shutil
from pathlib import Path

import yaml

from .kustomize import ROOT, Document, parts

# The files in `files/` of the chart are links to kustomize's files; copying follows the links
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
    """Copies the Helm chart to a new directory, and sets the version and the image in the copy.

    Args:
        directory: the directory for the copy, which must not exist yet.
        version: the version of the release.
        image: the image of the service, with a tag or a digest.
        home: the URL of the project's page; if it is empty, fields that need it are left out.
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

    Returns no fields if `home`, the URL of the project's page, is empty.
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
    """Returns registry, repository, tag and digest of an image, for the chart's value `image`.

    A part that the image lacks is empty.
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
