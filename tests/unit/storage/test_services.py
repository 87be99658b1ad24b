"""A Service for each instance: which are made, changed and deleted, and whose are left alone."""

from typing import Any

import pytest

from simulator.api.apply import LAST_APPLIED
from tests.builders import Document, tapp, template, terminating, with_meta
from tests.reading import desired
from tests.unit.world import World, condition

PORT = {"port": 80}


def exposed(replicas: int = 2, template: Any = None, **spec: Any) -> World:
    """A TApp at rest, each of whose instances has a Service."""
    wanted = {"spec": {"ports": [PORT]}} if template is None else template
    parent = tapp(replicas=replicas, serviceTemplate=wanted, **spec)
    return World(parent, exposing=True).settle()


def refused(world: World) -> str:
    """The condition's words after the next sync, "" where there is none."""
    found = condition(world.sync(), "ServicesNotCreated")
    return "" if found is None else f"{found['reason']}: {found['message']}"


def somebody_elses(world: World, id: int, **labels: str) -> Document:
    """A Service with the name of an instance that Metacontroller has not written."""
    name = f"web-{id}"
    meta = {"name": name, "namespace": "shop", "uid": "u-1", "resourceVersion": "7"}
    meta["labels"] = {"controller-uid": world.parent["metadata"]["uid"], **labels}
    spec = {"selector": {"app": "mine"}, "type": "ExternalName", "sessionAffinity": "None"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


# --- what is made ---------------------------------------------------------------------------------


def test_each_instance_has_a_service_of_its_name_that_selects_it_alone() -> None:
    world = exposed(
        template={
            "metadata": {"labels": {"app": "web"}, "annotations": {"join": "$(tapp.name)"}},
            "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": "3000$(tapp.index)"}]},
        }
    )
    service = world.services["web-1"]
    assert service["metadata"]["labels"]["app"] == "web"
    assert service["metadata"]["annotations"]["join"] == "web-1"
    assert service["spec"]["ports"][0]["nodePort"] == 30_001
    uid = world.parent["metadata"]["uid"]
    assert service["spec"]["selector"] == {"controller-uid": uid, "tapp_instance_key": "1"}
    pod = world.pod(1)["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= pod.items()


def test_what_the_api_server_fills_in_is_never_written_again() -> None:
    world = exposed(template={"spec": {"type": "LoadBalancer", "clusterIP": "", "ports": [PORT]}})
    service = world.services["web-0"]
    assert service["spec"]["clusterIP"]
    assert service["spec"]["ports"][0]["nodePort"]
    world.sync()
    assert world.writes == []
    assert world.services["web-0"] is service
    assert "notExposed" not in world.parent["status"]


@pytest.mark.parametrize(
    "absent", [{"publishNotReadyAddresses": False}, {"healthCheckNodePort": 0}], ids=str
)
def test_a_zero_that_the_api_server_does_not_store_is_not_asked_for_again(absent: Document) -> None:
    """Asked for, it would be missing from the stored Service for ever, and written each time."""
    world = exposed(template={"spec": {"ports": [PORT], **absent}})
    world.sync()
    assert world.writes == []
    assert "notExposed" not in world.parent["status"]


def test_a_zero_that_the_api_server_refuses_is_not_left_out() -> None:
    """Left out, it would become the default of three hours, and nobody would be told."""
    never = {"clientIP": {"timeoutSeconds": 0}}
    sticky = {"sessionAffinity": "ClientIP", "sessionAffinityConfig": never}
    world = exposed(template={"spec": {"ports": [PORT], **sticky}})
    assert world.services["web-0"]["spec"]["sessionAffinityConfig"] == never


NUMBERS = {
    "an index": ({"port": "$(tapp.index)"}, 1),
    "a value": ({"port": "$(tapp.values.port)"}, 7001),
    "digits around it": ({"port": "70$(tapp.index)"}, 701),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_a_placeholder_becomes_a_port(case: str) -> None:
    port, expected = NUMBERS[case]
    values = {"values": {"1": {"port": "7001"}}, "defaultValues": {"port": "7000"}}
    more = values if "values" in str(port) else {}
    world = exposed(template={"spec": {"ports": [port]}}, **more)
    assert world.services["web-1"]["spec"]["ports"][0]["port"] == expected


def test_a_changed_template_reaches_the_services_and_no_pod() -> None:
    world = exposed()
    before = world.services["web-0"]["spec"]["clusterIP"]
    world.change(serviceTemplate={"spec": {"ports": [{"port": 81}]}}).sync()
    assert world.writes == ["update Service/web-0", "update Service/web-1"]
    spec = world.services["web-0"]["spec"]
    assert (spec["ports"][0]["port"], spec["clusterIP"]) == (81, before)
    world.settle()
    assert refused(world) == ""


def test_a_value_that_only_the_service_reads_is_read() -> None:
    world = exposed(
        template={"spec": {"ports": [{"port": "$(tapp.values.port)"}]}},
        defaultValues={"port": "80"},
    )
    assert condition(world.parent["status"], "UnusedValues") is None


# --- what goes ------------------------------------------------------------------------------------


def test_a_service_goes_with_its_number_after_its_pod() -> None:
    world = exposed(3).change(replicas=1)
    world.sync()
    assert world.writes == ["delete Pod/web-1", "delete Pod/web-2"]
    world.kubelet()
    world.sync()
    assert world.writes == ["delete Service/web-1", "delete Service/web-2"]


@pytest.mark.parametrize(
    ("policy", "left"), [(None, ["web-0", "web-1"]), ("Retain", ["web-0", "web-1"]),
                         ("Delete", ["web-0"])]
)  # fmt: skip
def test_a_killed_instance_keeps_its_service_unless_it_is_to_go(
    policy: str | None, left: list[str]
) -> None:
    world = exposed(serviceRetentionPolicy=policy and {"whenKilled": policy})
    world.change(statuses={"1": "Killed"}).settle()
    assert [*world.services] == left
    world.change(statuses=None).settle()
    assert [*world.services] == ["web-0", "web-1"]


def test_without_the_template_all_go_and_pods_stay() -> None:
    world = exposed()
    pods = world.uids()
    world.change(serviceTemplate=None).settle()
    assert world.services == {}
    assert world.uids() == pods


def test_they_stay_while_a_tapp_that_goes_has_pods() -> None:
    world = exposed()
    request = world.request(finalizing=True)
    kinds = [child["kind"] for child in world.hook.finalize(request)["children"]]
    assert kinds == ["Service", "Service"]
    world.pods = {}
    answer = world.hook.finalize(world.request(finalizing=True))
    assert (answer["children"], answer["finalized"]) == ([], True)


@pytest.mark.parametrize("finalizer", ["orphan", "foregroundDeletion"])
def test_the_garbage_collector_finds_them_as_they_are(finalizer: str) -> None:
    world = exposed()
    world.parent = with_meta(world.parent, finalizers=[finalizer])
    answer = world.hook.finalize(world.request(finalizing=True))
    assert [c["metadata"]["name"] for c in answer["children"] if c["kind"] == "Service"] == [
        "web-0", "web-1",
    ]  # fmt: skip


# --- what is not ours, and what is refused --------------------------------------------------------


@pytest.mark.parametrize("labels", [{}, {"tapp_instance_key": "0"}], ids=["", "exposed pod"])
def test_a_service_of_somebody_else_is_left_alone_and_named(labels: dict[str, str]) -> None:
    """`kubectl expose pod` copies the pod's labels, and Metacontroller adopts what has them."""
    world = World(tapp(replicas=2, serviceTemplate={"spec": {"ports": [PORT]}}), exposing=True)
    world.services["web-0"] = theirs = somebody_elses(world, 0, **labels)
    world.settle()
    assert world.services["web-0"]["spec"].items() >= theirs["spec"].items()
    assert "web-1" in world.services
    assert refused(world).startswith("NoService: instances 0: a Service of their name is somebody")
    world.change(serviceTemplate=None, replicas=0).settle()
    assert [*world.services] == ["web-0"]


def test_one_whose_mark_was_removed_is_in_doubt_and_stays() -> None:
    world = exposed()
    service = world.services["web-0"]
    world.services["web-0"] = with_meta(service, annotations={})
    world.change(serviceTemplate=None).settle()
    assert [*world.services] == ["web-0"]
    assert LAST_APPLIED in world.services["web-0"]["metadata"]["annotations"]


def test_one_that_does_not_come_about_is_named_after_a_while() -> None:
    world = exposed()
    del world.services["web-1"]
    world.sync()
    del world.services["web-1"]
    assert "notExposed" in world.parent["status"]
    assert refused(world) == ""
    del world.services["web-1"]
    world.hook.now += 31
    assert refused(world).startswith("NoService: instances 1 since ")
    assert refused(world) == ""
    assert "notExposed" not in world.parent["status"]


@pytest.mark.parametrize("name", ["with.dot", "n" * 62])
def test_a_name_that_no_service_can_have_is_said_at_once(name: str) -> None:
    """The API server would refuse each Service; the pods, whose names may be so, run."""
    parent = tapp(replicas=2, serviceTemplate={"spec": {"ports": [PORT]}})
    world = World(with_meta(parent, name=name), exposing=True)
    said = refused(world)
    assert said.startswith("NoService: spec.serviceTemplate, instances 0: the Service would be")
    assert f"{name}-0" in said
    assert world.services == {}
    assert sorted(world.pods) == [f"{name}-0", f"{name}-1"]


def test_only_the_instances_whose_names_are_too_long_have_no_service() -> None:
    parent = tapp(replicas=11, serviceTemplate={"spec": {"ports": [PORT]}})
    world = World(with_meta(parent, name="n" * 61), exposing=True)
    assert "spec.serviceTemplate, instances 10: the Service would be named" in refused(world)
    assert len(world.services) == 10


def test_one_that_is_being_deleted_is_waited_for() -> None:
    world = exposed()
    world.services["web-0"] = terminating(world.services["web-0"])
    answer = world.sync()
    assert world.writes == []
    assert [*desired(answer, "Service")] == ["web-0", "web-1"]


def test_without_the_component_nothing_is_made_and_that_is_said() -> None:
    world = World(tapp(replicas=1, serviceTemplate={"spec": {"ports": [PORT]}})).settle()
    assert refused(world).startswith("NotRegistered: no Service is made")


@pytest.mark.parametrize("method", [None, "OnDelete", "Recreate"])
def test_a_registration_that_updates_them_otherwise_loses_none(method: str | None) -> None:
    world = exposed()
    request = world.request()
    for child in request["controller"]["spec"]["childResources"]:
        if child["resource"] == "services":
            child["updateStrategy"] = {"method": method} if method else None
    answer = world.hook.sync(request)
    names = [c["metadata"]["name"] for c in answer["children"] if c["kind"] == "Service"]
    assert names == ["web-0", "web-1"]
    found = condition(answer, "ServicesNotCreated")
    assert found is not None
    assert found["reason"] == "NotRegistered"


def test_with_the_component_and_without_a_template_nothing_is_said() -> None:
    world = World(tapp(replicas=1), exposing=True).settle()
    assert refused(world) == ""
    assert world.services == {}


BAD = {
    "no spec": ({}, "spec.serviceTemplate: spec is missing"),
    "a spec that is none": ({"spec": []}, "spec is not an object"),
    "a selector": ({"spec": {"selector": {"a": "b"}}}, "spec.selector: leave it out"),
    "metadata": ({"metadata": "x", "spec": {}}, "metadata is not an object"),
    "a label": ({"metadata": {"labels": {"a": 1}}, "spec": {}}, "labels['a'] is not a string"),
    "no value": (
        {"spec": {"ports": [{"port": "$(tapp.values.p)"}]}},
        "instances 0: spec.ports[0].port reads the value 'p', and the instance has none",
    ),
    "no port": (
        {"spec": {"ports": [{"port": "7$(tapp.index)00000"}]}},
        "instances 0: spec.ports[0].port becomes '7000000': it takes a whole number from 1 to",
    ),
    "one port twice": (
        {"spec": {"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]}},
        "instances 0, 1: spec.ports has one port number twice",
    ),
    "an unknown placeholder": (
        {"spec": {"externalName": "$(tapp.number)"}},
        "spec.externalName: there is no placeholder '$(tapp.number)'",
    ),
    "one that is not closed": ({"spec": {"externalName": "$(tapp.index"}}, "is not closed"),
    "a key": ({"spec": {"$(tapp.index)": "x"}}, "is never filled in"),
    "a name": ({"metadata": {"name": "$(tapp.name)"}, "spec": {}}, "this name is never filled in"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_template_is_said_and_nothing_is_lost(case: str) -> None:
    wrong, message = BAD[case]
    world = exposed()
    before = dict(world.services)
    world.change(serviceTemplate=wrong).settle()
    assert message in refused(world)
    assert world.services == before


def test_who_can_be_filled_in_is_made_although_another_cannot() -> None:
    port = {"spec": {"ports": [{"port": "$(tapp.values.p)"}]}}
    parent = tapp(replicas=2, serviceTemplate=port, values={"0": {"p": "80"}, "1": {"p": "x"}})
    world = World(parent, exposing=True).settle()
    assert [*world.services] == ["web-0"]
    assert "instances 1: spec.ports[0].port becomes 'x'" in refused(world)
    assert [*world.pods] == ["web-0", "web-1"]


def test_pods_know_nothing_of_services() -> None:
    """No pod of a user is touched by the template of Services."""
    plain = World(tapp(template=template()), exposing=True).settle()
    pods = plain.uids()
    plain.change(serviceTemplate={"spec": {"ports": [PORT]}}).settle()
    assert plain.uids() == pods
    assert not plain.writes
