"""Tests the Service of each instance: when it is created, changed and deleted, and which Services
stay.
"""

from typing import Any

import pytest

from simulator.api.apply import LAST_APPLIED
from tests.builders import Document, tapp, template, terminating, with_meta
from tests.hook_calls import desired
from tests.unit.world import World, condition

PORT = {"port": 80}


def tapp_with_services(replicas: int = 2, template: Any = None, **spec: Any) -> World:
    """Returns a TApp with a Service for each instance, after it has settled.

    `template` is the Service template; None for one with port 80.
    """
    wanted = {"spec": {"ports": [PORT]}} if template is None else template
    parent = tapp(replicas=replicas, serviceTemplate=wanted, **spec)
    return World(parent, exposing=True).settle()


def refusal_message(world: World) -> str:
    """Runs a sync; returns reason and message of `ServicesNotCreated`, or "" without the
    condition.
    """
    found = condition(world.sync(), "ServicesNotCreated")
    return "" if found is None else f"{found['reason']}: {found['message']}"


def foreign_service(world: World, id: int, **labels: str) -> Document:
    """Returns a Service with the name of an instance that a user has created; `labels` are further
    labels.
    """
    name = f"web-{id}"
    meta = {"name": name, "namespace": "shop", "uid": "u-1", "resourceVersion": "7"}
    meta["labels"] = {"controller-uid": world.parent["metadata"]["uid"], **labels}
    spec = {"selector": {"app": "mine"}, "type": "ExternalName", "sessionAffinity": "None"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


# --- creation and change --------------------------------------------------------------------------


def test_each_instance_has_a_service_that_selects_only_its_pod() -> None:
    world = tapp_with_services(
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


def test_fields_that_the_api_server_fills_in_cause_no_write() -> None:
    world = tapp_with_services(
        template={"spec": {"type": "LoadBalancer", "clusterIP": "", "ports": [PORT]}}
    )
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
def test_zero_value_that_the_api_server_does_not_store_causes_no_write(absent: Document) -> None:
    """A Service template has zero values that the API server drops: a second sync writes nothing.

    Otherwise the stored Service would never match, and each sync would write it.
    """
    world = tapp_with_services(template={"spec": {"ports": [PORT], **absent}})
    world.sync()
    assert world.writes == []
    assert "notExposed" not in world.parent["status"]


def test_zero_value_with_another_default_is_sent_to_the_api_server() -> None:
    """A Service template has a zero whose default is another number: the Service has the zero.

    Without the value, the API server would silently use its default of three hours.
    """
    never = {"clientIP": {"timeoutSeconds": 0}}
    sticky = {"sessionAffinity": "ClientIP", "sessionAffinityConfig": never}
    world = tapp_with_services(template={"spec": {"ports": [PORT], **sticky}})
    assert world.services["web-0"]["spec"]["sessionAffinityConfig"] == never


NUMBERS = {
    "index": ({"port": "$(tapp.index)"}, 1),
    "value": ({"port": "$(tapp.values.port)"}, 7001),
    "digits and index": ({"port": "70$(tapp.index)"}, 701),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_placeholder_can_be_used_as_a_port_number(case: str) -> None:
    port, expected = NUMBERS[case]
    values = {"values": {"1": {"port": "7001"}}, "defaultValues": {"port": "7000"}}
    more = values if "values" in str(port) else {}
    world = tapp_with_services(template={"spec": {"ports": [port]}}, **more)
    assert world.services["web-1"]["spec"]["ports"][0]["port"] == expected


def test_changed_service_template_updates_services_and_no_pod() -> None:
    world = tapp_with_services()
    before = world.services["web-0"]["spec"]["clusterIP"]
    world.change(serviceTemplate={"spec": {"ports": [{"port": 81}]}}).sync()
    assert world.writes == ["update Service/web-0", "update Service/web-1"]
    spec = world.services["web-0"]["spec"]
    assert spec["ports"][0]["port"] == 81
    assert spec["clusterIP"] == before
    world.settle()
    assert refusal_message(world) == ""


def test_value_that_only_the_service_template_reads_does_not_count_as_unused() -> None:
    world = tapp_with_services(
        template={"spec": {"ports": [{"port": "$(tapp.values.port)"}]}},
        defaultValues={"port": "80"},
    )
    assert condition(world.parent["status"], "UnusedValues") is None


# --- deletion -------------------------------------------------------------------------------------


def test_scale_down_deletes_services_after_their_pods() -> None:
    world = tapp_with_services(3).change(replicas=1)
    world.sync()
    assert world.writes == ["delete Pod/web-1", "delete Pod/web-2"]
    world.kubelet()
    world.sync()
    assert world.writes == ["delete Service/web-1", "delete Service/web-2"]


@pytest.mark.parametrize(
    ("policy", "left"),
    [(None, ["web-0", "web-1"]), ("Retain", ["web-0", "web-1"]), ("Delete", ["web-0"])],
    ids=["default", "Retain", "Delete"],
)
def test_service_of_a_killed_instance_is_deleted_only_with_when_killed_delete(
    policy: str | None, left: list[str]
) -> None:
    world = tapp_with_services(serviceRetentionPolicy=policy and {"whenKilled": policy})
    world.change(statuses={"1": "Killed"}).settle()
    assert [*world.services] == left
    world.change(statuses=None).settle()
    assert [*world.services] == ["web-0", "web-1"]


def test_removing_the_service_template_deletes_all_services_and_no_pod() -> None:
    world = tapp_with_services()
    pods = world.uids()
    world.change(serviceTemplate=None).settle()
    assert world.services == {}
    assert world.uids() == pods


def test_services_of_a_deleted_tapp_stay_until_its_pods_are_gone() -> None:
    world = tapp_with_services()
    request = world.request(finalizing=True)
    kinds = [child["kind"] for child in world.hook.finalize(request)["children"]]
    assert kinds == ["Service", "Service"]
    world.pods = {}
    answer = world.hook.finalize(world.request(finalizing=True))
    assert answer["children"] == []
    assert answer["finalized"] is True


@pytest.mark.parametrize("finalizer", ["orphan", "foregroundDeletion"])
def test_finalize_keeps_services_if_the_garbage_collector_handles_them(finalizer: str) -> None:
    world = tapp_with_services()
    world.parent = with_meta(world.parent, finalizers=[finalizer])
    answer = world.hook.finalize(world.request(finalizing=True))
    assert [c["metadata"]["name"] for c in answer["children"] if c["kind"] == "Service"] == [
        "web-0", "web-1",
    ]  # fmt: skip


# --- Services of others, and refusals -------------------------------------------------------------


@pytest.mark.parametrize(
    "labels", [{}, {"tapp_instance_key": "0"}], ids=["no labels", "labels of the pod"]
)
def test_service_of_somebody_else_stays_and_sets_a_condition(labels: dict[str, str]) -> None:
    """A user's Service has the name of an instance: it stays as it is, and a condition names it.

    `kubectl expose pod` copies the labels of the pod, so Metacontroller adopts the Service.
    """
    world = World(tapp(replicas=2, serviceTemplate={"spec": {"ports": [PORT]}}), exposing=True)
    world.services["web-0"] = theirs = foreign_service(world, 0, **labels)
    world.settle()
    assert world.services["web-0"]["spec"].items() >= theirs["spec"].items()
    assert "web-1" in world.services
    assert refusal_message(world).startswith(
        "NoService: instance 0: a Service with the name of the pod exists"
    )
    world.change(serviceTemplate=None, replicas=0).settle()
    assert [*world.services] == ["web-0"]


def test_service_without_the_last_applied_annotation_is_not_deleted() -> None:
    world = tapp_with_services()
    service = world.services["web-0"]
    world.services["web-0"] = with_meta(service, annotations={})
    world.change(serviceTemplate=None).settle()
    assert [*world.services] == ["web-0"]
    assert LAST_APPLIED in world.services["web-0"]["metadata"]["annotations"]


def test_service_that_is_not_created_is_reported_after_half_a_minute() -> None:
    world = tapp_with_services()
    del world.services["web-1"]
    world.sync()
    del world.services["web-1"]
    assert "notExposed" in world.parent["status"]
    assert refusal_message(world) == ""
    del world.services["web-1"]
    world.hook.now += 31
    assert refusal_message(world).startswith(
        "NoService: Services that the TApp service has requested do not exist or differ: instance 1"
    )
    assert refusal_message(world) == ""
    assert "notExposed" not in world.parent["status"]


@pytest.mark.parametrize("name", ["with.dot", "n" * 62], ids=["dot", "too long"])
def test_tapp_whose_name_no_service_can_have_sets_a_condition_and_gets_its_pods(name: str) -> None:
    """The name of a TApp is valid for pods and not for Services: it gets its pods, and a
    condition.
    """
    parent = tapp(replicas=2, serviceTemplate={"spec": {"ports": [PORT]}})
    world = World(with_meta(parent, name=name), exposing=True)
    said = refusal_message(world)
    assert said.startswith("NoService: spec.serviceTemplate, instance 0: the Service would be")
    assert f"{name}-0" in said
    assert world.services == {}
    assert sorted(world.pods) == [f"{name}-0", f"{name}-1"]


def test_only_instances_with_too_long_names_have_no_service() -> None:
    parent = tapp(replicas=11, serviceTemplate={"spec": {"ports": [PORT]}})
    world = World(with_meta(parent, name="n" * 61), exposing=True)
    assert "spec.serviceTemplate, instance 10: the Service would be named" in refusal_message(world)
    assert len(world.services) == 10


def test_terminating_service_is_not_written() -> None:
    world = tapp_with_services()
    world.services["web-0"] = terminating(world.services["web-0"])
    answer = world.sync()
    assert world.writes == []
    assert [*desired(answer, "Service")] == ["web-0", "web-1"]


def test_condition_is_set_without_the_component_services() -> None:
    world = World(tapp(replicas=1, serviceTemplate={"spec": {"ports": [PORT]}})).settle()
    assert refusal_message(world).startswith("NotRegistered: no Service is created")


@pytest.mark.parametrize(
    "method", [None, "OnDelete", "Recreate"], ids=["none", "OnDelete", "Recreate"]
)
def test_services_stay_if_the_registration_has_another_update_strategy(method: str | None) -> None:
    world = tapp_with_services()
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


def test_no_condition_is_set_without_a_service_template() -> None:
    world = World(tapp(replicas=1), exposing=True).settle()
    assert refusal_message(world) == ""
    assert world.services == {}


INVALID = {
    "no spec": ({}, "spec.serviceTemplate: spec is missing"),
    "spec is a list": ({"spec": []}, "spec is not an object"),
    "selector": ({"spec": {"selector": {"a": "b"}}}, "spec.selector: leave it out"),
    "metadata is a string": ({"metadata": "x", "spec": {}}, "metadata is not an object"),
    "label is a number": (
        {"metadata": {"labels": {"a": 1}}, "spec": {}},
        "labels['a'] is not a string",
    ),
    "missing value": (
        {"spec": {"ports": [{"port": "$(tapp.values.p)"}]}},
        "instance 0: spec.ports[0].port reads the value 'p', and the instance has none",
    ),
    "port out of range": (
        {"spec": {"ports": [{"port": "7$(tapp.index)00000"}]}},
        "instance 0: spec.ports[0].port becomes '7000000', and has to be a whole number from 1 to",
    ),
    "port twice": (
        {"spec": {"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]}},
        "instances 0, 1: spec.ports has one port number twice",
    ),
    "unknown placeholder": (
        {"spec": {"externalName": "$(tapp.number)"}},
        "spec.externalName: there is no placeholder '$(tapp.number)'",
    ),
    "placeholder that is not closed": ({"spec": {"externalName": "$(tapp.index"}}, "is not closed"),
    "placeholder in a key": (
        {"spec": {"$(tapp.index)": "x"}},
        "placeholders in keys are not filled in",
    ),
    "placeholder in the name": (
        {"metadata": {"name": "$(tapp.name)"}, "spec": {}},
        "placeholders in this name are not filled in",
    ),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_service_template_sets_a_condition_and_keeps_services(case: str) -> None:
    wrong, message = INVALID[case]
    world = tapp_with_services()
    before = dict(world.services)
    world.change(serviceTemplate=wrong).settle()
    assert message in refusal_message(world)
    assert world.services == before


def test_service_is_created_although_the_value_of_another_instance_is_invalid() -> None:
    port = {"spec": {"ports": [{"port": "$(tapp.values.p)"}]}}
    parent = tapp(replicas=2, serviceTemplate=port, values={"0": {"p": "80"}, "1": {"p": "x"}})
    world = World(parent, exposing=True).settle()
    assert [*world.services] == ["web-0"]
    assert "instance 1: spec.ports[0].port becomes 'x'" in refusal_message(world)
    assert [*world.pods] == ["web-0", "web-1"]


def test_service_template_does_not_change_pods() -> None:
    plain = World(tapp(template=template()), exposing=True).settle()
    pods = plain.uids()
    plain.change(serviceTemplate={"spec": {"ports": [PORT]}}).settle()
    assert plain.uids() == pods
    assert not plain.writes


@pytest.mark.parametrize(("name", "refused"), [("1web", True), ("w1", False)])
def test_missing_services_whose_names_begin_with_a_digit_name_the_version_that_refuses_them(
    name: str, refused: bool
) -> None:
    """Kubernetes before 1.36 refuses such a Service, and no request says which version it is.

    A cluster that creates the Services has no condition.
    """
    parent = tapp(replicas=2, serviceTemplate={"spec": {"ports": [PORT]}})
    world = World(with_meta(parent, name=name), exposing=True).settle()
    assert sorted(world.services) == [f"{name}-0", f"{name}-1"]
    assert refusal_message(world) == ""
    world.services.clear()
    world.sync()
    world.services.clear()
    world.hook.now += 31
    said = refusal_message(world)
    assert "do not exist or differ" in said
    assert ("Kubernetes before 1.36 refuses Services" in said) is refused
