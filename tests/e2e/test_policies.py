"""The two admission policies on a real API server, alone and with a TApp at work."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .app import GROUP, TEMPLATE, App, each, example, tapp, template
from .cluster import REPOSITORY
from .kube import Json, Kube, KubeError, documents

pytestmark = pytest.mark.e2e

POLICIES = REPOSITORY / "metacontroller" / "components" / "admission-policies"
LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"


def eventually(action: Callable[[], Any], seconds: float = 60) -> Any:
    """Repeats what fails until a policy has taken effect."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return action()
        except (KubeError, AssertionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def policy_objects() -> list[Json]:
    """Policies and bindings of the component."""
    found = [one for file in sorted(POLICIES.glob("*.yaml")) for one in documents(file)]
    return [one for one in found if one["kind"] != "Component"]


def stored_annotations(kube: Kube, labels: Json, owners: list[Json]) -> set[str]:
    """The annotations that are left of two when such a pod is created (in a dry run)."""
    metadata = {
        "name": "p",
        "namespace": "default",
        "labels": labels,
        "ownerReferences": owners,
        "annotations": {LAST_APPLIED: "{}", "other": "1"},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": TEMPLATE["spec"]}
    made = kube.request("POST", kube.path("v1", "pods", "default"), pod, {"dryRun": "All"})
    return set(made["metadata"]["annotations"])


OURS = {"tapp_instance_key": "0"}
OWNER = {"apiVersion": GROUP, "kind": "TApp", "name": "t", "uid": "u", "controller": True}


def pooled(names: tuple[str, ...], **spec: Any) -> Json:
    """A TApp that has these templates and runs nothing."""
    pool = {"templatePool": dict.fromkeys(names, TEMPLATE), "autoDeleteUnusedTemplate": True}
    made = tapp("pooled", **{"replicas": 0, **pool, **spec})
    made["metadata"]["namespace"] = "default"
    return made


def stored_pool(kube: Kube, document: Json) -> list[str]:
    """What is left of the pool when such a TApp is created (in a dry run)."""
    path = kube.path(GROUP, "tapps", "default")
    made = kube.request("POST", path, document, {"dryRun": "All"})
    return sorted(made["spec"].get("templatePool") or {})


def in_force(kube: Kube) -> tuple[bool, bool]:
    """Whether each of the policies has taken effect."""
    slim = stored_annotations(kube, OURS, [OWNER]) == {"other"}
    return slim, stored_pool(kube, pooled(("unused",))) == []


@pytest.fixture
def install(kube: Kube) -> Iterator[Callable[[], None]]:
    """Puts both policies into force; they go after the test."""
    made = policy_objects()

    def everywhere(wanted: bool) -> None:
        def check() -> None:
            assert in_force(kube) == (wanted, wanted)

        eventually(check)

    def put() -> None:
        for one in made:
            kube.apply(one)
        everywhere(True)

    yield put
    for one in made:
        plural, _ = kube.resource_of(one["apiVersion"], one["kind"])
        kube.delete(one["apiVersion"], plural, None, one["metadata"]["name"])
    everywhere(False)


@pytest.fixture
def policies(install: Callable[[], None]) -> None:
    """Both policies, in force for the test."""
    install()


# --- each policy alone ----------------------------------------------------------------------------


@pytest.mark.usefixtures("policies")
def test_exactly_the_templates_that_nothing_names_are_deleted(kube: Kube, namespace: str) -> None:
    names = ("listed", "with/slash", "with~tilde", "lower", "upper", "rolling", "default")
    spec: Json = {
        "templates": {"1": "listed"},
        "defaultTemplateName": "lower",
        "DefaultTemplateName": "upper",
        "updateStrategy": {"template": "rolling"},
    }
    used = ["listed", "lower", "rolling", "upper"]
    assert stored_pool(kube, pooled(names, **spec)) == used
    unwanted = pooled(names, **spec, autoDeleteUnusedTemplate=False)
    assert stored_pool(kube, unwanted) == sorted(names)
    unwanted["metadata"]["namespace"] = namespace
    kube.create(unwanted)
    path = kube.path(GROUP, "tapps", namespace, "pooled")
    cleaned = kube.patch(path, {"spec": {"autoDeleteUnusedTemplate": True}})
    assert sorted(cleaned["spec"]["templatePool"]) == used


@pytest.mark.usefixtures("policies")
def test_only_pods_that_a_tapp_owns_lose_the_copy_of_themselves(kube: Kube) -> None:
    assert stored_annotations(kube, OURS, [OWNER]) == {"other"}
    assert stored_annotations(kube, OURS, []) == {LAST_APPLIED, "other"}
    assert stored_annotations(kube, {}, [OWNER]) == {LAST_APPLIED, "other"}


# --- at work --------------------------------------------------------------------------------------


def two_protocols(image: str = "app:1") -> Json:
    """A template whose container has one port on TCP and UDP."""
    made = template(image)
    made["spec"]["containers"][0]["ports"] = [
        {"name": "dns", "containerPort": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"},
    ]
    return made


def born(name: str, *numbers: int) -> list[str]:
    """With the policy Metacontroller puts a copy of the pod's metadata back: one write more."""
    return [*each("create Pod", name, *numbers), *each("update Pod", name, *numbers)]


def ports(pod: Json) -> list[str]:
    return [port["protocol"] for port in pod["spec"]["containers"][0]["ports"]]


@pytest.mark.usefixtures("policies")
def test_an_unused_template_leaves_the_pool_as_the_tapp_is_written(app: App) -> None:
    app.apply(*example("unused-templates/1-create")).settle()
    assert app.wrote(*born("tidy", 0, 1, 2))
    app.apply(*example("unused-templates/2-unused")).settle()
    assert list(app.found["spec"]["templatePool"]) == ["green"]  # type: ignore[index]
    assert app.condition("UnusedTemplates") == ""
    assert app.wrote("update Pod tidy-0")
    assert app.idle()


@pytest.mark.usefixtures("policies")
def test_pods_without_their_copy_live_as_the_others_do(app: App) -> None:
    """Created, kept without a write, updated in place, relabelled, recreated, deleted."""
    app.apply(tapp()).settle()
    assert app.wrote(*born("web", 0, 1, 2))
    copies = [json.loads(pod["metadata"]["annotations"][LAST_APPLIED]) for pod in app.pods.values()]
    assert all("spec" not in one for one in copies)
    assert app.idle()
    uids = app.uids()
    app.patch(template=template("app:2")).settle()
    assert app.wrote_in_order(*each("update Pod", "web", 0, 1, 2))
    assert (app.images(), app.uids()) == ("app:2 app:2 app:2", uids)
    assert app.idle()
    app.patch(template=template("app:2", hostname="h")).settle()
    assert app.wrote(*each("delete Pod", "web", 0, 1, 2), *born("web", 0, 1, 2))
    app.patch(replicas=0).settle()
    assert app.wrote(*each("delete Pod", "web", 0, 1, 2))


@pytest.mark.usefixtures("policies")
def test_one_port_on_tcp_and_udp_with_the_policy(app: App) -> None:
    app.apply(tapp(template=two_protocols())).settle()
    assert app.wrote(*born("web", 0, 1, 2))
    assert app.idle()
    app.patch(template=two_protocols("app:2")).settle()
    assert app.wrote_in_order(*each("update Pod", "web", 0, 1, 2))
    assert [ports(pod) for pod in app.pods.values()] == [["UDP", "TCP"]] * 3
    assert app.condition("DuplicateMergeKeys") == ""
    assert app.idle()


def test_one_port_on_tcp_and_udp_without_the_policy(app: App, install: Callable[[], None]) -> None:
    """The pods run, a condition tells, nobody else suffers; its advice, followed, repairs it."""
    mixed = {"templatePool": {"dns": two_protocols()}, "templates": {"1": "dns"}}
    app.apply(tapp(**mixed))
    app.until(lambda: app.statuses == "Running Running Running", "all run")
    app.until(lambda: app.condition("DuplicateMergeKeys") != "", "a condition")
    assert app.condition("DuplicateMergeKeys").startswith("True NotMergeable: instances 1: ")
    assert ports(app.pod(1)) == ["UDP", "TCP"]
    born = app.uids()
    app.patch(template=template("app:2"))
    app.until(lambda: app.images() == "app:2 app:1 app:2", "0 and 2 are updated")
    app.until(lambda: app.statuses == "Running Running Running", "all run")
    assert app.uids() == born
    install()
    app.patch(statuses={"1": "Killed"})
    app.until(lambda: app.statuses == "Running Killed Running", "1 is killed")
    app.patch(statuses={"1": None}).settle()
    assert app.condition("DuplicateMergeKeys") == ""
    assert {**app.uids(), 1: ""} == {**born, 1: ""}
    assert {write.name for write in app.news(refused=(409, 422)) if write.code == 422} == {"web-1"}
    assert app.idle()
