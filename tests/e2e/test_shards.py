"""Two shards, each with a real Metacontroller: their TApps, and moves of a TApp between them.

kustomize builds registrations, labels and policy from metacontroller/components/shards and
metacontroller/overlays/shard.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.sizes import FULL

from .app import App, each, tapp
from .cluster import REPOSITORY
from .disturbed_rollout import PATIENCE, Roll
from .kube import Json, Kube, KubeError, documents
from .kubelet_controls import Levers
from .metacontroller import SHIPPED, Controller, another, with_hook
from .process import Process
from .proxy import HookProxy

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600), pytest.mark.usefixtures("shards")]
MANIFESTS = REPOSITORY / "metacontroller"
LABEL = "apps.tkestack.io/shard"
DEFAULT, OTHER = "tapp-controller", "tapp-controller-b"
FINALIZER = "metacontroller.io/compositecontroller-"
INSTANCES, BUDGET = (1000, 100) if FULL else (6, 2)


def selector_flag(manifest: Json) -> str:
    """Returns the flag in a manifest that selects the registrations of a Metacontroller."""
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    (found,) = [each for each in container["args"] if each.startswith("--target-label-selector")]
    return str(found)


@pytest.fixture
def shards(
    tapps: Controller,
    kube: Kube,
    kubectl: Callable[..., str],
    workspace: Path,
    hook_proxy: HookProxy,
) -> Iterator[None]:
    """Runs a second Metacontroller for the TApps with the label `b`."""
    (default,) = documents(SHIPPED[0])
    component = yaml.safe_load((MANIFESTS / "components/shards/kustomization.yaml").read_text())
    ((operation,),) = [yaml.safe_load(each["patch"]) for each in component["patches"]]
    divided = json.loads(json.dumps(default))
    divided["spec"]["parentResource"]["labelSelector"] = operation["value"]
    built = yaml.safe_load_all(kubectl("kustomize", str(MANIFESTS / "overlays/shard")))
    other = {document["kind"]: document for document in built}
    assert sorted(other) == ["CompositeController", "StatefulSet"]
    (arguments,) = documents(MANIFESTS / "overlays/metacontroller/arguments.yaml")
    both = [
        another(tapps, kube, workspace, selector_flag(manifest), name=f"metacontroller-{name}")
        for name, manifest in (("default", arguments), ("b", other["StatefulSet"]))
    ]
    tapps.stop()
    kube.apply(with_hook(divided, hook_proxy.url))
    kube.apply(with_hook(other["CompositeController"], hook_proxy.url))
    try:
        for one in both:
            one.start()
        yield
    finally:
        for one in both:
            one.stop()
        kube.delete("metacontroller.k8s.io/v1alpha1", "compositecontrollers", None, OTHER)
        kube.apply(with_hook(default, hook_proxy.url))
        tapps.start()


@pytest.fixture
def policy(kube: Kube) -> Iterator[None]:
    """Installs the policy that the label changes only together with the finalizer."""
    shipped = documents(MANIFESTS / "components/shards/one-at-a-time.yaml")
    for document in shipped:
        kube.apply(document)
    yield
    for document in shipped:
        plural, _ = kube.resource_of(document["apiVersion"], document["kind"])
        kube.delete(document["apiVersion"], plural, None, document["metadata"]["name"])


def costs() -> str:
    """Returns the memory and CPU time of each Metacontroller so far, as text."""
    found = []
    for each_one in Process.running:
        if each_one.name.startswith("metacontroller"):
            status = Path(f"/proc/{each_one.pid}/status").read_text()
            fields = Path(f"/proc/{each_one.pid}/stat").read_text().rpartition(")")[2].split()
            peak = int(status.partition("VmHWM:")[2].split()[0]) >> 10
            seconds = sum(int(each) for each in fields[11:13]) / os.sysconf("SC_CLK_TCK")
            found.append(f"{each_one.name} {peak} MiB at most, {seconds:.1f} CPU s")
    return "; ".join(found)


def finalizers(app: App) -> list[str]:
    """Returns the controllers in charge of the TApp according to its finalizers."""
    found = app.found or {"metadata": {}}
    listed = found["metadata"].get("finalizers") or []
    return [each.removeprefix(FINALIZER) for each in listed if each.startswith(FINALIZER)]


def callers(app: App) -> set[str]:
    """Returns the registrations that have called the hooks about this TApp."""
    return {json.loads(call)["controller"]["metadata"]["name"] for call in app.calls()}


def refused(app: App, kube: Kube, patch: Json) -> str:
    """Returns the API server's message to a refused patch of the TApp."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            kube.request("PATCH", app.path, patch, {"dryRun": "All"})
        except KubeError as error:
            return error.message
        time.sleep(0.3)  # the API server reads its policies once a second
    raise AssertionError("the policy is not in force")


def move_patch(shard: str | None) -> Json:
    """Returns the patch of docs/sizing.md, "Shards", that moves a TApp."""
    name = OTHER if shard else DEFAULT
    return {"metadata": {"labels": {LABEL: shard}, "finalizers": [f"{FINALIZER}{name}"]}}


@pytest.mark.parametrize(
    ("labels", "name"), [({}, DEFAULT), ({LABEL: "b"}, OTHER)], ids=["without a label", "b"]
)
def test_shard_is_served_only_by_its_own_metacontroller(
    app: App, levers: Levers, labels: dict[str, str], name: str, note: list[str]
) -> None:
    """Only one registration calls the hooks, no finalizer remains, and the costs are reported."""
    rolling = Roll(app, levers, instances=INSTANCES, budget=BUDGET).create(**labels)
    rolling.begin().end().wrote_once()
    note.append(f"{INSTANCES} instances of {name}: {costs()}")
    assert callers(app) == {name}
    assert finalizers(app) == [name]
    app.delete()
    app.until(lambda: not app.pods, "its pods are gone")


@pytest.mark.usefixtures("policy")
def test_tapp_moves_to_another_shard_during_a_rollout_and_back(
    app: App, levers: Levers, kube: Kube
) -> None:
    """One patch moves the TApp.

    Only the rollout writes pods, and the other Metacontroller completes it.
    """
    rolling = Roll(app, levers).create().begin(pull_seconds=1)
    bare: Json = {"metadata": {"labels": {LABEL: "b"}}}
    told = refused(app, kube, bare)
    assert json.dumps(move_patch("b"), separators=(",", ":")) in told
    kube.patch(app.path, move_patch("b"))
    assert finalizers(app) == [OTHER]
    rolling.end().wrote_once()
    assert finalizers(app) == [OTHER]
    assert DEFAULT in callers(app)
    assert OTHER in callers(app)
    back = refused(app, kube, {"metadata": {"labels": {LABEL: None}}})
    assert json.dumps(move_patch(None), separators=(",", ":")) in back
    kube.patch(app.path, move_patch(None))
    app.idle()
    assert finalizers(app) == [DEFAULT]
    assert app.writes() == []


def test_shard_label_changed_without_the_policy_stops_no_pod(app: App, kube: Kube) -> None:
    """Finalizing hands the TApp over. The claims stay, even with the policy Delete."""
    app.apply(tapp(persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"})).settle()
    assert app.wrote(*each("create Pod", "web", 0, 1, 2))
    born = app.uids()
    kube.patch(app.path, {"metadata": {"labels": {LABEL: "b"}}})
    app.until(lambda: finalizers(app) == [OTHER], "the TApp is handed over")
    app.idle()
    assert app.uids() == born
    assert app.writes() == []


def test_shard_label_without_a_metacontroller_stops_no_pod(app: App, kube: Kube) -> None:
    app.apply(tapp()).settle()
    born = app.uids()
    kube.patch(app.path, {"metadata": {"labels": {LABEL: "x"}}})
    app.until(lambda: finalizers(app) == [], "no controller is in charge")
    kube.patch(app.path, {"spec": {"replicas": 4}})
    app.quiet()
    assert app.uids() == born
    kube.patch(app.path, {"metadata": {"labels": {LABEL: None}}})
    app.settle()
    assert len(app.pods) == 4
    assert app.uids().items() >= born.items()
