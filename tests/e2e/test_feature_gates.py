"""Features of Kubernetes 1.37 behind feature gates: gangs, and evictions that ask first.

These tests have their own control plane with the gates on. Its scheduler binds pods, and fake nodes
have room for as many pods as a test needs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.kustomize import composed

from .app import example, tapp, template
from .definitions import definition_files
from .installed_release import IMAGE, Fresh, fresh_cluster
from .kube import Json
from .kubelet import FakeKubelet

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
GATES = "GenericWorkload=true,EvictionRequestAPI=true"
SERVED = "scheduling.k8s.io/v1beta1=true,lifecycle.k8s.io/v1alpha1=true"
GROUPS = "scheduling.k8s.io/v1beta1"
HOLD = "apps.tkestack.io/hold"
BIG = {"requests": {"cpu": "999"}}
"""Resources of a pod that fills a fake node."""


@pytest.fixture(scope="module")
def gated(workspace: Path, needs: Callable[[int, str], None]) -> Iterator[Fresh]:
    """A cluster of three nodes with the feature gates on and TApp installed."""
    needs(37, GROUPS)
    with fresh_cluster(workspace, [f"--runtime-config={SERVED}"], GATES) as made:
        made.do("kubectl", "create", "-f", definition_files(os.environ)[-1])
        file = made.directory / "install.yaml"
        file.write_text(yaml.dump_all(composed([], IMAGE), Dumper=yaml.CSafeDumper))
        made.until_done("kubectl", "apply", "--server-side", "-f", file)
        made.established()
        made.serve()
        made.control()
        yield made


def gang(replicas: int, image: str | None = None, **spec: Any) -> list[Json]:
    """Returns the example with this number of instances; each pod fills a node."""
    group, made = example("gang")
    group["spec"]["schedulingPolicy"]["gang"]["minCount"] = replicas
    made["spec"] |= {"replicas": replicas, **spec}
    (container,) = made["spec"]["template"]["spec"]["containers"]
    container |= {"resources": BIG} | ({"image": image} if image else {})
    for each in (group, made):
        each["metadata"]["namespace"] = "default"
    return [group, made]


def bound(gated: Fresh) -> list[str]:
    """Returns the pods of the gang that have a node."""
    found = gated.kube.list_all("v1", "pods", "default")
    here = [each for each in found if "deletionTimestamp" not in each["metadata"]]
    grouped = [each for each in here if each["spec"].get("schedulingGroup")]
    return [each["metadata"]["name"] for each in grouped if each["spec"].get("nodeName")]


def group(gated: Fresh) -> Json | None:
    """Returns the PodGroup, or None."""
    return gated.kube.find(GROUPS, "podgroups", "default", "trainer")


def group_condition(gated: Fresh) -> str:
    """Returns status and reason of the scheduler's condition on the group."""
    found = group(gated) or {}
    conditions = (found.get("status") or {}).get("conditions") or [{}]
    return f"{conditions[0].get('status')} {conditions[0].get('reason')}"


def test_gang_is_bound_together_and_its_instances_change_separately(gated: Fresh) -> None:
    """Pods are bound together or not at all. Afterwards each instance can change separately."""
    kube = gated.kube

    def apply(*made: Any, **spec: Any) -> None:
        for each in gang(*made, **spec):
            kube.apply(each)

    def wait_until_bound(count: int, what: str) -> None:
        gated.until(lambda: gated.ready("trainer") and len(bound(gated)) == count, what)

    def replace_pod(name: str) -> None:
        uid = gated.pods("trainer")[name]
        gated.do("kubectl", "delete", "pod", name, "--wait=false")
        gated.until(lambda: gated.pods("trainer").get(name) not in (None, uid), f"another {name}")

    apply(4)
    gated.until(
        lambda: group_condition(gated) == "False Unschedulable", "the gang is unschedulable"
    )
    assert len(gated.pods("trainer")) == 4
    assert bound(gated) == []
    with FakeKubelet(gated.kubeconfig, ("more-0", "more-1")):
        wait_until_bound(4, "there is room for all")

        first = gated.pods("trainer")
        replace_pod("trainer-2")
        wait_until_bound(4, "it is bound alone")
        assert {**gated.pods("trainer"), "trainer-2": ""} == {**first, "trainer-2": ""}

        first = gated.pods("trainer")
        apply(4, "app:2")
        wait_until_bound(4, "another image")
        assert gated.pods("trainer") == first  # in place

        apply(5, "app:2")
        wait_until_bound(5, "one more, and the group asks for one more")

        apply(5, "app:2", statuses={"1": "Killed"})
        wait_until_bound(4, "one is stopped")
        apply(5, "app:2")
        wait_until_bound(5, "and started, alone")

        kube.delete(GROUPS, "podgroups", "default", "trainer")
        replace_pod("trainer-3")
        wait_until_bound(5, "a group that is to go stays while it has pods")
        gated.do("kubectl", "delete", "tapp", "trainer", "--timeout=60s")
        gated.until(lambda: not gated.pods("trainer"), "the pods are gone")
        gated.until(lambda: group(gated) is None, "the group is gone")


RESPONDER = {"name": "games.example.com/match", "priority": 10000}


def tapp_with_responder(replicas: int = 2, image: str = "app:1", **spec: Any) -> Json:
    """Returns a TApp whose pods name a responder for evictions."""
    made = template(image, **{"evictionResponders": [RESPONDER], **spec})
    found = tapp("match", replicas=replicas, template=made)
    found["metadata"]["namespace"] = "default"
    return found


def test_hold_delays_an_eviction_until_the_responder_removes_it(gated: Fresh) -> None:
    """A responder lets its pod go by removing the hold, which must not look like an action of the
    service.

    1.37 has the API, but no controller for it. The test plays the responder.
    """
    kube = gated.kube
    kube.apply(tapp_with_responder())
    gated.until(lambda: gated.ready("match"), "the TApp is ready")
    first = gated.pods("match")
    path = kube.path("v1", "pods", "default", "match-1")
    kube.patch(path, {"metadata": {"annotations": {HOLD: "until the match is over"}}})
    request = {
        "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "EvictionRequest",
        "metadata": {"name": "drain", "namespace": "default"},
        "spec": {
            "target": {"pod": {"name": "match-1", "uid": first["match-1"]}},
            "requester": "nodes.example.com/drain", "intent": "Eviction",
        },
    }  # fmt: skip
    kube.create(request)
    kube.apply(tapp_with_responder(image="app:2"))
    gated.until(
        lambda: image(gated, "match-0") == "app:2", "the instance without a hold is updated"
    )
    assert gated.pods("match") == first
    assert image(gated, "match-1") == "app:1"
    responders = kube.get("v1", "pods", "default", "match-0")["spec"]["evictionResponders"]
    assert responders == [RESPONDER]

    kube.patch(path, {"metadata": {"annotations": {HOLD: None}}})  # the responder's work has ended
    gated.do("kubectl", "delete", "pod", "match-1", "--wait=false")  # the responder deletes the pod
    gated.until(
        lambda: gated.pods("match").get("match-1") not in (None, first["match-1"]),
        "the evicted pod is replaced",
    )
    gated.until(lambda: gated.ready("match"), "the TApp is ready again")
    assert image(gated, "match-1") == "app:2"
    kube.apply(
        tapp_with_responder(image="app:2", evictionResponders=[{**RESPONDER, "priority": 9000}])
    )
    gated.until(
        lambda: not set(gated.pods("match").values()) & set(first.values()), "all pods are replaced"
    )
    gated.until(lambda: gated.ready("match"), "the TApp is ready with other responders")


def image(gated: Fresh, name: str) -> str:
    """Returns the image in the spec of a pod."""
    found = gated.kube.get("v1", "pods", "default", name)
    return str(found["spec"]["containers"][0]["image"])
