"""The custom resource definitions that a cluster gets before its controllers start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
TAPP = HERE.parents[1] / "crds" / "tapp.yaml"
METACONTROLLER = HERE / "metacontroller-crds.yaml"


def metacontroller_manifests(environment: Mapping[str, str]) -> Path | None:
    """Metacontroller's own production manifests, where the environment tells their place."""
    given = environment.get("METACONTROLLER_MANIFESTS")
    return Path(given) if given else None


def definition_files(environment: Mapping[str, str]) -> list[Path]:
    """TApp's definition and Metacontroller's.

    Metacontroller's are its own where its manifests are at hand, else ours, which say no more than
    that the kinds exist.
    """
    own = metacontroller_manifests(environment)
    theirs = own / "metacontroller-crds-v1.yaml" if own else METACONTROLLER
    return [TAPP, theirs]
