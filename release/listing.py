"""The chart's entry in indexes such as ArtifactHub."""

import json
import re
from collections.abc import Iterator

import yaml

from .kustomize import ROOT, Document

ICON = "docs/img/icon.svg"
EXAMPLE = ROOT / "examples" / "different-templates.yaml"
_KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
"""The headings of Keep a Changelog, which are ArtifactHub's kinds of changes, too."""
_LINK = re.compile(r"!?\[([^]]*)\]\([^)]*\)")


def metadata(version: str, image: str, home: str) -> Document:
    """The part of Chart.yaml that a release adds, for people and indexes.

    `home` is the project's page on a forge; without one the chart does not say where it comes from.
    """
    found: Document = {}
    if home:
        found |= {
            "home": home,
            "sources": [home],
            "icon": f"{home}/raw/v{version}/{ICON}",
            "maintainers": [{"name": "The maintainers of TApp", "url": home}],
        }
    return found | {"annotations": annotations(version, image, home)}


def annotations(version: str, image: str, home: str) -> dict[str, str]:
    """ArtifactHub's annotations: texts, some of which are YAML."""
    text = (ROOT / "crds" / "tapp.yaml").read_text(encoding="utf-8")
    definition = yaml.load(text, yaml.CSafeLoader)
    names = definition["spec"]["names"]
    crd = {
        "kind": names["kind"],
        "version": definition["spec"]["versions"][0]["name"],
        "name": definition["metadata"]["name"],
        "displayName": names["kind"],
        "description": "Numbered instances with templates of their own",
    }
    found: Document = {
        "license": "Apache-2.0",
        "prerelease": json.dumps("-" in version),
        "operator": "true",
        "images": dump([{"name": "tapp-hooks", "image": image}]),
        "crds": dump([crd]),
        "crdsExamples": dump(
            [
                each
                for each in yaml.safe_load_all(EXAMPLE.read_text(encoding="utf-8"))
                if each["kind"] == names["kind"]
            ]
        ),
        "changes": dump(list(changes(version))),
    }
    if home:
        links = {"documentation": f"{home}/tree/v{version}/docs", "support": f"{home}/issues"}
        found["links"] = dump([{"name": name, "url": url} for name, url in links.items()])
    return {f"artifacthub.io/{key}": value for key, value in found.items()}


def dump(value: object) -> str:
    """A value as a text of YAML."""
    return yaml.safe_dump(value, sort_keys=False, width=100)


def changes(version: str) -> Iterator[dict[str, str]]:
    """The entries of CHANGELOG.md for a version: kind and description, without marks and links."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    _, found, rest = text.partition(f"\n## [{version}]")
    section = re.split(r"\n## \[", rest)[0] if found else ""
    for part in re.split(r"\n### ", section)[1:]:
        heading, _, body = part.partition("\n")
        for item in re.split(r"(?m)^- ", body)[1:]:
            words = " ".join(_LINK.sub(r"\1", item).replace("`", "").replace("**", "").split())
            if heading in _KINDS:
                yield {"kind": heading.lower(), "description": words}
