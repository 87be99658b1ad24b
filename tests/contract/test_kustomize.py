"""Tests builds of kustomize: the manifests in another namespace, and TApps with kustomize's
features.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.kustomize import ROOT, STUB, build, components
from tapp.kube.project import MERGE_KEYS
from tests.contract.charts import Document, only, tools

GITOPS = ROOT / "gitops" / "kustomize"


@pytest.fixture(scope="module", autouse=True)
def on_path() -> Iterator[None]:
    """Adds kubectl to the PATH for all tests of this file."""
    with tools():
        yield


# --- another namespace ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [(), ("bearer-token",), ("pod-status", "tls-cert-manager"), tuple(components())],
    ids=lambda names: "+".join(names) or "base",
)
def test_namespace_transformer_moves_the_whole_installation(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    """Builds the manifests for another namespace: the name of the original namespace appears
    nowhere.

    References move, too: hook URLs, Secrets, certificates, monitors, alerts.
    """
    for part in ("metacontroller", "crds"):
        shutil.copytree(ROOT / part, tmp_path / part)
    (tmp_path / "crds" / "tapp.yaml").write_text(STUB)
    deploy: Document = {
        "namespace": "workloads",
        "resources": ["../metacontroller/base"],
        "components": [f"../metacontroller/components/{name}" for name in names],
    }
    (tmp_path / "deploy").mkdir()
    file = tmp_path / "deploy" / "kustomization.yaml"
    file.write_text(yaml.safe_dump(deploy))
    before = build(tmp_path / "deploy")
    file.write_text(yaml.safe_dump({**deploy, "transformers": ["../metacontroller/namespace"]}))
    moved = build(tmp_path / "deploy")
    assert "tapp-system" not in json.dumps(moved)
    assert "tapp-system" in json.dumps(before)
    hooks = only(moved, "CompositeController")["spec"]["hooks"].values()
    assert all("tapp-hooks.workloads.svc:" in each["webhook"]["url"] for each in hooks)
    assert only(moved, "Namespace")["metadata"]["name"] == "workloads"


# --- TApps ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built() -> list[Document]:
    """Returns the objects of the kustomize example."""
    return build(GITOPS)


def test_names_in_a_tapp_are_changed_like_the_objects_themselves(built: list[Document]) -> None:
    """A prefix and generated names reach all references in a TApp.

    kustomize must find names in the template, in the template pool, and in other fields.
    """
    spec = only(built, "TApp", "shop-web")["spec"]
    names = {each["kind"]: each["metadata"]["name"] for each in built}
    pod = spec["template"]["spec"]
    assert pod["containers"][0]["envFrom"] == [{"configMapRef": {"name": names["ConfigMap"]}}]
    for each in (pod, spec["templatePool"]["canary"]["spec"]):
        assert each["volumes"][0]["secret"]["secretName"] == names["Secret"]
    assert pod["serviceAccountName"] == names["ServiceAccount"]
    assert spec["serviceName"] == names["Service"] == "shop-web"
    scaled = only(built, "HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]
    assert scaled["name"] == "shop-web"


def test_patch_of_one_container_keeps_the_other_container(built: list[Document]) -> None:
    spec = only(built, "TApp")["spec"]
    main, side = spec["template"]["spec"]["containers"]
    assert main["name"] == "main"
    assert main["image"] == "nginx:1.28"
    assert side["image"] == "busybox:1.37"
    assert {each["name"]: each["value"] for each in main["env"]} == {"A": "1", "MODE": "fast"}
    assert spec["replicas"] == 5
    assert spec["template"]["metadata"]["labels"] == {"app": "web", "team": "shop"}


def test_merge_keys_are_those_of_metacontroller() -> None:
    """The merge keys in the shipped schema for kustomize are those that Metacontroller uses.

    In addition, kustomize needs keys of fields that no in-place update changes.
    """

    def found(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if "x-kubernetes-patch-merge-key" in value:
                yield value["x-kubernetes-patch-merge-key"]
            yield from chain.from_iterable(map(found, value.values()))

    document = json.loads((GITOPS / "openapi.json").read_text())
    assert {*found(document)} - {"topologyKey", "devicePath"} <= {*MERGE_KEYS}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_patches_of_other_kinds_still_work(kind: str, tmp_path: Path) -> None:
    """Patches one container of a workload of another kind, with the shipped schema in `openapi:`.

    The file in `openapi:` replaces kustomize's schemas of all kinds, so it must contain those of
    these kinds.
    """
    shutil.copy(GITOPS / "openapi.json", tmp_path)
    containers = [{"name": "main", "image": "a:1"}, {"name": "side", "image": "b:1"}]
    head = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "other"}}

    def with_containers(items: list[dict[str, str]]) -> str:
        return yaml.safe_dump({**head, "spec": {"template": {"spec": {"containers": items}}}})

    (tmp_path / "other.yaml").write_text(with_containers(containers))
    patch = with_containers([{"name": "side", "image": "b:2"}])
    openapi = {"path": "openapi.json"}
    kustomization = {"resources": ["other.yaml"], "openapi": openapi, "patches": [{"patch": patch}]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    (made,) = build(tmp_path)
    images = {
        each["name"]: each["image"] for each in made["spec"]["template"]["spec"]["containers"]
    }
    assert images == {"main": "a:1", "side": "b:2"}
