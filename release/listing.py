"""How the chart is found and read: what indexes such as ArtifactHub show of it, and its README."""

import json
import re
from collections.abc import Iterator

import yaml

from .kustomize import ROOT, Document
from .values import dump

KEYWORDS = ("tapp", "workload", "statefulset", "canary", "in-place-update", "metacontroller")
ICON = "docs/img/icon.svg"
EXAMPLE = ROOT / "examples" / "different-templates.yaml"
_KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
"""The headings of Keep a Changelog, which are ArtifactHub's kinds of changes, too."""
_LINK = re.compile(r"!?\[([^]]*)\]\([^)]*\)")
_INTRO = """\
# TApp

A Kubernetes workload like a StatefulSet, whose numbered instances can each run a pod template of
their own, and be stopped, started and updated one by one, in place if only images change.

The chart installs the definition of `TApp`, the hook service that decides, its registration and,
if you want, [Metacontroller](https://metacontroller.github.io/metacontroller/), which asks it.
Kubernetes 1.33 or newer.

```
helm install tapp CHART --namespace tapp-system --create-namespace --set metacontroller.enabled=true
```

CHART is a file of a release, or where it is published, with `oci://` before it. Leave the last
option out where a Metacontroller runs already. `helm uninstall` leaves the definition, all TApps
and their pods.
"""
_VALUES = """\
## Values
A mistyped one is refused. Those of Metacontroller's chart go below `metacontroller`.

| value | default | what it is |
|---|---|---|
"""


def metadata(version: str, image: str, home: str) -> Document:
    """The part of Chart.yaml that is for people and indexes.

    `home` is the project's page on a forge; without one the chart does not say where it comes from.
    """
    found: Document = {"keywords": list(KEYWORDS)}
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


def changes(version: str) -> Iterator[dict[str, str]]:
    """What CHANGELOG.md says of a version: kind and description, without marks and links."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    _, found, rest = text.partition(f"\n## [{version}]")
    section = re.split(r"\n## \[", rest)[0] if found else ""
    for part in re.split(r"\n### ", section)[1:]:
        heading, _, body = part.partition("\n")
        for item in re.split(r"(?m)^- ", body)[1:]:
            words = " ".join(_LINK.sub(r"\1", item).replace("`", "").replace("**", "").split())
            if heading in _KINDS:
                yield {"kind": heading.lower(), "description": words}


def readme(defaults: Document, described: Document) -> str:
    """README.md of the chart, with a line for each value that can be set."""
    lines = [
        f"| `{name}` | {_cell(default)} | {_text(description)} |"
        for name, default, description in rows(defaults, described)
    ]
    return "\n".join([_INTRO, _VALUES + "\n".join(lines), ""])


def rows(
    defaults: Document, described: Document, path: str = ""
) -> Iterator[tuple[str, object, str]]:
    """(name, default, description) of what can be set, inside others by its whole name."""
    for key, field in described["properties"].items():
        default = defaults.get(key, field.get("default"))
        parts = field.get("properties", {}).values()
        if default and any("description" in part for part in parts):
            yield from rows(default, field, f"{path}{key}.")
        elif default is not None:
            yield f"{path}{key}", default, field.get("description", "")


_LONG = 60


def _cell(default: object) -> str:
    """A default in a cell; a long one stands in values.yaml."""
    text = json.dumps(default)
    return f"`{text}`" if len(text) <= _LONG else "see values.yaml"


def _text(description: str) -> str:
    return " ".join(description.split()).replace("|", "\\|")
