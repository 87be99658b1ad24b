"""Tests `plan -f` if the names of pods and claims are taken, for example by those of a
StatefulSet.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import claim_template, manifest
from tests.plugin.fake_kubectl import Document, Said, StandIn, kubectl_tapp
from tests.scenarios.life import Life, registration

OWNERS: dict[str, tuple[Document, list[str]]] = {
    "of a StatefulSet": (
        {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web",
                              "uid": "s", "controller": True}]},
        ["belongs to StatefulSet web",
         "`kubectl delete statefulset web --cascade=orphan -n default`",
         "`kubectl tapp adopt web -n default` adopts it"]),
    "nobody's": ({}, ["has no owner; `kubectl tapp adopt web -n default` adopts it"]),
    "of a TApp that is gone": (
        {"labels": {"controller-uid": "gone"}}, ["was left behind by a deleted TApp web"]),
    "of another controller": (
        {"ownerReferences": [{"apiVersion": "a.b/v1", "kind": "Thing", "name": "t", "uid": "t",
                              "controller": True}]}, ["belongs to Thing t, so the name is taken"]),
}  # fmt: skip


def named(kind: str, name: str, **metadata: Any) -> Document:
    spec: Document = {"containers": [{"name": "app", "image": "web:1"}]}
    if kind == "PersistentVolumeClaim":
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": name, "namespace": "default", **metadata}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}


def plan(tmp_path: Path, *objects: Document, options: tuple[str, ...] = (), **spec: Any) -> Said:
    """Plans a new TApp with three instances and claims in a cluster that already has these
    objects.
    """
    world = Life(exposing=True).apply(registration(exposing=True)).world
    for each in objects:
        world.cluster.create(world.kinds.of(each), each)
    file = tmp_path / "web.json"
    spec = {"replicas": 3, "volumeClaimTemplates": [claim_template("data")], **spec}
    file.write_text(json.dumps(manifest(**spec)))
    return kubectl_tapp(StandIn(world), "plan", "-f", str(file), *options)


@pytest.mark.parametrize("whose", OWNERS)
def test_existing_pods_and_claims_are_named(tmp_path: Path, whose: str) -> None:
    """The plan names the pods that block instances, and the claims that instances will use with
    their data.
    """
    metadata, told = OWNERS[whose]
    objects = [named("Pod", f"web-{id}", **metadata) for id in (0, 1)]
    claims = [f"data-web-{id}" for id in (0, 2)]
    said = plan(tmp_path, *objects, *(named("PersistentVolumeClaim", each) for each in claims))
    assert said.code == 0, said.err
    assert said.lines[0].startswith("TApp default/web: 1 created, 2 waiting, 1 claim created")
    assert (
        "pods web-0, web-1 exist already, so none is created for instances 0, 1: each" in said.out
    )
    for text in told:
        assert text in said.out
    assert "claims data-web-0, data-web-2 exist already and will be used: each" in said.out


def test_document_of_the_plan_creates_only_missing_objects(tmp_path: Path) -> None:
    said = plan(tmp_path, named("Pod", "web-1"), options=("-o", "json"))
    found = json.loads(said.out)
    outcomes = {each["id"]: each["outcome"] for each in found["instances"]}
    assert outcomes == {0: "created", 1: "waiting", 2: "created"}
    created = [each["name"] for each in found["writes"] if each["verb"] == "create"]
    assert "web-1" not in created
    assert "web-2" in created


def test_objects_with_other_names_are_ignored(tmp_path: Path) -> None:
    said = plan(tmp_path, named("Pod", "web-7"), named("Pod", "other-0"))
    assert "already" not in said.out
    assert "3 created" in said.lines[0]


SERVED = {"serviceTemplate": {"spec": {"ports": [{"port": 80}]}}}
BUDGETED = {"disruptionBudget": {"maxUnavailable": 1}}


def service(name: str, **metadata: Any) -> Document:
    return {**named("Service", name, **metadata), "spec": {"ports": [{"port": 80}]}}


def test_existing_services_are_named_and_not_counted_as_created(tmp_path: Path) -> None:
    """A Service of somebody else is never taken over: the instance gets none until it is
    deleted.
    """
    options = ("-o", "json")
    said = plan(tmp_path, service("web-1"), service("web-2"), service("web-9"), **SERVED)
    assert "1 Service created" in said.lines[0]
    assert "ServicesNotCreated" in said.out
    assert "Services web-1, web-2 exist already, so none is created there: each has no owner" in (
        " ".join(said.out.split())
    )
    found = json.loads(plan(tmp_path, service("web-1"), options=options, **SERVED).out)
    made = [(x["kind"], x["name"]) for x in found["writes"] if x["verb"] == "create"]
    assert ("Service", "web-1") not in made
    assert ("Pod", "web-1") in made


def test_existing_pod_hides_no_service_of_the_same_name(tmp_path: Path) -> None:
    said = plan(tmp_path, named("Pod", "web-1"), options=("-o", "json"), **SERVED)
    found = json.loads(said.out)
    assert found["services"] == {f"web-{id}": "created" for id in range(3)}


def test_existing_disruption_budget_is_named(tmp_path: Path) -> None:
    """With a PodDisruptionBudget of somebody else, spec.disruptionBudget limits nothing."""
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {},
              "metadata": {"name": "web", "namespace": "default"}}  # fmt: skip
    assert "PodDisruptionBudget created" in plan(tmp_path, **BUDGETED).lines[0]
    said = plan(tmp_path, budget, **BUDGETED)
    assert "PodDisruptionBudget created" not in said.lines[0]
    assert "PodDisruptionBudget web exists already, so none is created" in " ".join(
        said.out.split()
    )


@pytest.mark.parametrize("has_label", [True, False])
def test_label_that_adopted_pods_will_lose_is_named_before_the_adoption(
    tmp_path: Path, has_label: bool
) -> None:
    """Before `adopt`, the pods are the StatefulSet's, and the plan is the last chance to add the
    label to the template.
    """
    labels = {"statefulset.kubernetes.io/pod-name": "web-0"} if has_label else {}
    said = plan(tmp_path, named("Pod", "web-0", labels=labels, **OWNERS["of a StatefulSet"][0]))
    assert ("New pods of these instances will lack the label" in said.out) is has_label
