"""The CustomResourceDefinitions that a cluster gets before its controllers start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
TAPP = HERE.parents[1] / "crds" / "tapp.yaml"
METACONTROLLER = HERE / "metacontroller-crds.yaml"


def metacontroller_manifests(environment: Mapping[str, str]) -> Path | None:
    """Returns Metacontroller's production manifests, or None if the environment does not
    name them.
    """
    given = environment.get("METACONTROLLER_MANIFESTS")
    return Path(given) if given else None


def definition_files(environment: Mapping[str, str]) -> list[Path]:
    """Returns the files with the definitions of TApp and of Metacontroller.

    Without Metacontroller's manifests, a file of these tests defines its kinds, without schemas.
    """
    own = metacontroller_manifests(environment)
    theirs = own / "metacontroller-crds-v1.yaml" if own else METACONTROLLER
    return [TAPP, theirs]
