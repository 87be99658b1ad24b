"""Builds the install manifests with kustomize, and finds objects in them.

`build` builds a directory, `composed` the base with components.
"""

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.kustomize import STUB

Document = dict[str, Any]
INSTALL = Path(__file__).parents[2] / "metacontroller"
METACONTROLLER = INSTALL / "overlays" / "metacontroller"


def kustomize() -> list[str] | None:
    """Returns the command that builds a kustomization: that of kubectl or of kustomize.

    Returns None if neither is on PATH.
    """
    if found := shutil.which("kubectl"):
        return [found, "kustomize"]
    if found := shutil.which("kustomize"):
        return [found, "build"]
    return None


@cache
def build(directory: Path) -> list[Document]:
    """Returns the objects of the kustomization in a directory; skips the test without kubectl and
    kustomize.
    """
    command = kustomize()
    if command is None:
        pytest.skip("neither kubectl nor kustomize on PATH")
    done = subprocess.run(
        [*command, str(directory)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"KUBECONFIG": os.devnull, "GOGC": "off"},
    )
    assert done.returncode == 0, done.stderr
    loaded = yaml.load_all(done.stdout, yaml.CSafeLoader)
    return [document for document in loaded if document]


def only(documents: list[Document], kind: str, name: str | None = None) -> Document:
    """Returns the only object of a kind in a list; if `name` is given, the only one with this
    name.
    """
    found = [
        document
        for document in documents
        if document["kind"] == kind and name in {None, document["metadata"]["name"]}
    ]
    assert len(found) == 1, (kind, name, len(found))
    return found[0]


def pod_spec(documents: list[Document]) -> Document:
    """Returns the pod spec of the only Deployment in a list of objects."""
    spec: Document = only(documents, "Deployment")["spec"]["template"]["spec"]
    return spec


@cache
def composed(*names: str, stub: bool = True) -> list[Document]:
    """Returns the objects of the base with these components, added in this order as a user would
    do.

    If `stub` is True, the CRD has no schema: building the real one takes most of the time.
    """
    with tempfile.TemporaryDirectory() as place:
        for part in ("crds", "metacontroller"):
            shutil.copytree(INSTALL.parent / part, Path(place) / part)
        if stub:
            (Path(place) / "crds" / "tapp.yaml").write_text(STUB, encoding="utf-8")
        deploy = {
            "resources": ["../metacontroller/base"],
            "components": [f"../metacontroller/components/{name}" for name in names],
        }
        directory = Path(place) / "deploy"
        directory.mkdir()
        (directory / "kustomization.yaml").write_text(yaml.safe_dump(deploy), encoding="utf-8")
        return build(directory)


def key_of_secret(key: str, name: str = "token") -> Document:
    """Returns the field with which a webhook refers to a key of the Secret `tapp-hooks-NAME`."""
    return {"name": f"tapp-hooks-{name}", "namespace": "tapp-system", "key": key}
