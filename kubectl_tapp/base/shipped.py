"""Reads the manifests of this release, from the plugin's wheel or from the repository."""

from functools import cache
from pathlib import Path
from typing import Any

_PACKAGED = Path(__file__).parents[1] / "shipped"
_REPOSITORY = Path(__file__).parents[2]
COMPOSITE = "metacontroller/base/composite-controller.yaml"
DECORATOR = "metacontroller/components/pod-status/decorator-controller.yaml"

DEFINITION = "crds/tapp.yaml"


@cache
def manifest(path: str) -> dict[str, Any]:
    """Returns a manifest of this release. `path` is one of the constants of this module.

    The wheel has the manifests under their paths in the repository, because pyproject.toml copies
    them there at the build. So there is no second version that could differ. Each manifest is read
    once.
    """
    import yaml  # noqa: PLC0415 - it costs start time

    packaged = _PACKAGED / path
    place = packaged if packaged.exists() else _REPOSITORY / path
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with place.open(encoding="utf-8") as file:
        document: dict[str, Any] = yaml.load(file, loader)  # noqa: S506 - a safe loader
    return document
