"""Builds TApp's objects from metacontroller/ with kustomize, for manifests and chart."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml


class ReleaseError(Exception):
    """The release cannot be built. The message says why, and what the maintainer can do."""


Document = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]
INSTALL = ROOT / "metacontroller"
PLACEHOLDER = "set-the-image.invalid/tapp-hooks"  # The image in metacontroller/base, without a tag
STUB = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tapps.apps.tkestack.io}
"""


def components() -> list[str]:
    """Returns the names of all components in metacontroller/, in the order in which they are
    applied.
    """
    return sorted(each.name for each in (INSTALL / "components").iterdir() if each.is_dir())


def command() -> list[str]:
    """Returns the command that builds a kustomization: `kubectl kustomize` or kustomize itself.

    Raises ReleaseError if neither program is on PATH.
    """
    if found := shutil.which("kubectl"):
        return [found, "kustomize"]
    if found := shutil.which("kustomize"):
        return [found, "build"]
    raise ReleaseError(
        "neither kubectl nor kustomize is on PATH: install one of them, or build kubectl with"
        " `make e2e-binaries` and put its directory on PATH"
    )


def build(directory: Path) -> list[Document]:
    """Builds the kustomization in a directory, and returns its objects in kustomize's order.

    Raises ReleaseError, with the error message of kustomize, if the kustomization cannot be built.
    """
    done = subprocess.run(  # noqa: S603 - the maintainer's own tool, no shell
        [*command(), str(directory)],
        capture_output=True,
        text=True,
        check=False,
        # Garbage collection would take half of the time.
        env=os.environ | {"KUBECONFIG": os.devnull, "GOGC": "off"},
    )
    if done.returncode != 0:
        raise ReleaseError(f"kustomize could not build {directory}: {done.stderr.strip()}")
    return [each for each in yaml.load_all(done.stdout, yaml.CSafeLoader) if each]


def composed(
    names: Iterable[str], image: str | None = None, *, stub: bool = False
) -> list[Document]:
    """Returns the objects of the base and of some components, as a user's kustomization combines
    them.

    Args:
        names: the names of the components.
        image: the image of the service, with a tag or a digest; None leaves the placeholder.
        stub: True if a small CRD without a schema replaces the CRD, because that builds faster.
            Components do not change the CRD.
    """
    deploy: Document = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["../metacontroller/base"],
        "components": [f"../metacontroller/components/{name}" for name in sorted(names)],
    }
    if image is not None:
        deploy["images"] = [{"name": PLACEHOLDER, **parts(image)}]
    with tempfile.TemporaryDirectory() as temporary:
        for part in ("crds", "metacontroller"):
            shutil.copytree(ROOT / part, Path(temporary) / part)
        if stub:
            (Path(temporary) / "crds" / "tapp.yaml").write_text(STUB, encoding="utf-8")
        directory = Path(temporary) / "deploy"
        directory.mkdir()
        (directory / "kustomization.yaml").write_text(yaml.safe_dump(deploy), encoding="utf-8")
        return build(directory)


def parts(image: str) -> dict[str, str]:
    """Returns an image in the form of kustomize's `images:`: `newName`, with `newTag` or `digest`.

    If the image has neither tag nor digest, the result has only `newName`.
    """
    name, at, digest = image.partition("@")
    if at:
        return {"newName": name, "digest": digest}
    # A colon before the last slash belongs to a port.
    head, slash, last = name.rpartition("/")
    base, colon, tag = last.partition(":")
    return {"newName": f"{head}{slash}{base}", **({"newTag": tag} if colon else {})}
