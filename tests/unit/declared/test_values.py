"""Tests values of instances: how placeholders are filled in, and which placeholders are errors."""

import json
from typing import Any

import pytest

from tests.builders import Document, claim_template, tapp, template
from tests.hook_calls import desired
from tests.unit.declared.values import new_pods, template_with_variable
from tests.unit.world import World, condition, settled


def value_of(pod: Document) -> Any:
    return pod["spec"]["containers"][0]["env"][0].get("value")


def blocked_message(**spec: Any) -> str:
    """Returns the message of `CreationBlocked` after the first sync of a TApp, or "" without the
    condition.
    """
    found = condition(World(tapp(**spec)).sync()["status"], "CreationBlocked")
    return "" if found is None else str(found["message"])


TEXTS = {
    "number": ("$(tapp.index)", "1"),
    "name": ("$(tapp.name)", "web-1"),
    "namespace": ("$(tapp.namespace)", "shop"),
    "value": ("$(tapp.values.shard)", "b"),
    "several in one text": ("x-$(tapp.values.shard)$(tapp.index).$(tapp.name)", "x-b1.web-1"),
    "escaped": ("$$(tapp.index)", "$(tapp.index)"),
    "escaped and filled in": ("$$(tapp.index)=$(tapp.index)", "$(tapp.index)=1"),
    "references of Kubernetes": (
        "$(HOME) $$(HOME) $(tapp) $(tapp_x)",
        "$(HOME) $$(HOME) $(tapp) $(tapp_x)",
    ),
    "reference of Kubernetes and placeholder": ("$(HOME)/$(tapp.index)", "$(HOME)/1"),
}


@pytest.mark.parametrize("case", TEXTS)
def test_placeholder_is_replaced_by_the_text_of_the_instance(case: str) -> None:
    text, expected = TEXTS[case]
    values = {"0": {"shard": "a"}, "1": {"shard": "b"}} if "values" in text else None
    pods = new_pods(replicas=2, template=template_with_variable(text), values=values)
    assert value_of(pods["web-1"]) == expected


@pytest.mark.parametrize(
    "value",
    ["$(tapp.index)", "$$(tapp.index)", "$(tapp.values.a)", 'a "quoted"\n\ttext', "\\", "é", "  "],
)
def test_filled_in_value_is_not_searched_for_placeholders(value: str) -> None:
    pods = new_pods(
        template=template_with_variable("<$(tapp.values.a)>"), values={"0": {"a": value}}
    )
    assert value_of(pods["web-0"]) == f"<{value}>"


def test_instance_without_a_value_has_the_default_value() -> None:
    body = template_with_variable("$(tapp.values.a)-$(tapp.values.b)")
    pods = new_pods(
        replicas=3, template=body, values={"1": {"a": "1"}, "2": {"a": ""}},
        defaultValues={"a": "x", "b": "y"},
    )  # fmt: skip
    assert [value_of(pods[f"web-{id}"]) for id in range(3)] == ["x-y", "1-y", "-y"]


def test_placeholders_are_filled_in_everywhere_in_a_template() -> None:
    body = template(
        "web:$(tapp.values.a)",
        labels={"app": "web", "shard": "$(tapp.values.a)"},
        annotations={"note": "$(tapp.values.a)"},
        container={
            "command": ["run", "--shard=$(tapp.values.a)"],
            "resources": {"requests": {"memory": "$(tapp.values.a)Gi"}},
            "volumeMounts": [{"name": "own", "mountPath": "/$(tapp.values.a)"}],
        },
        nodeSelector={"zone": "$(tapp.values.a)"},
        volumes=[{"name": "own", "configMap": {"name": "$(tapp.name)"}}],
    )
    (pod,) = new_pods(template=body, values={"0": {"a": "1024"}}).values()
    assert "$(" not in json.dumps(pod)
    assert pod["metadata"]["labels"]["shard"] == "1024"
    assert pod["spec"]["volumes"][0]["configMap"] == {"name": "web-0"}
    memory = pod["spec"]["containers"][0]["resources"]["requests"]["memory"]
    assert memory == "1Ti"


def template_with_text_at(place: str, text: str) -> Document:
    """Returns a template with a text at `place`, a path in the pod spec where Kubernetes has a
    number.
    """
    body = template()
    node: Any = body["spec"]
    *parents, last = place.split(".")
    for part in parents:
        if part.isdigit():
            node = node[int(part)]
            continue
        node = node.setdefault(part, [{"containerPort": 80}] if part == "ports" else {})
    node[last] = text
    return body


NUMBERS = {
    "containers.0.ports.0.containerPort": 7003,
    "containers.0.ports.0.hostPort": 7003,
    "containers.0.securityContext.runAsUser": 7003,
    "containers.0.securityContext.runAsGroup": 7003,
    "containers.0.readinessProbe.httpGet.port": 7003,
    "containers.0.livenessProbe.tcpSocket.port": 7003,
    "containers.0.startupProbe.grpc.port": 7003,
    "containers.0.lifecycle.preStop.httpGet.port": 7003,
    "securityContext.fsGroup": 7003,
    "securityContext.runAsUser": 7003,
    "terminationGracePeriodSeconds": 7003,
    "containers.0.workingDir": "7003",
}


@pytest.mark.parametrize("place", NUMBERS)
def test_single_placeholder_becomes_a_number_in_a_numeric_field(place: str) -> None:
    body = template_with_text_at(place, "$(tapp.values.n)")
    (pod,) = new_pods(template=body, values={"0": {"n": "7003"}}).values()
    node: Any = pod["spec"]
    for part in place.split("."):
        node = node[int(part)] if part.isdigit() else node[part]
    assert node == NUMBERS[place]
    assert type(node) is type(NUMBERS[place])


def test_placeholder_can_be_the_name_of_a_probe_port() -> None:
    body = template_with_text_at("containers.0.readinessProbe.httpGet.port", "$(tapp.values.n)")
    (pod,) = new_pods(template=body, values={"0": {"n": "http"}}).values()
    assert pod["spec"]["containers"][0]["readinessProbe"]["httpGet"]["port"] == "http"


HOST_PORT = "containers.0.ports.0.hostPort"


INVALID_PORTS = ["x", "", "-1", "65536", "1.5", "007", "1" * 400, "\uff17", "1\n"]


@pytest.mark.parametrize("value", INVALID_PORTS)
def test_value_that_is_no_port_number_blocks_its_instance(value: str) -> None:
    message = blocked_message(
        template=template_with_text_at(HOST_PORT, "$(tapp.values.n)"), values={"0": {"n": value}}
    )
    assert message.startswith(
        "instance 0: template 'default': spec.containers[0].ports[0].hostPort "
    )
    assert message.endswith("has to be a whole number from 0 to 65535")
    assert len(message) < 250


INVALID = {
    "unknown placeholder": (
        template_with_variable("$(tapp.indx)"),
        "there is no placeholder '$(tapp.indx)'",
    ),
    "no key": (
        template_with_variable("$(tapp.values.)"),
        "there is no placeholder '$(tapp.values.)'",
    ),
    "values without a key": (
        template_with_variable("$(tapp.values)"),
        "there is no placeholder '$(tapp.values)'",
    ),
    "key with a blank": (template_with_variable("$(tapp.values.a b)"), "there is no placeholder"),
    "not closed": (template_with_variable("$(tapp.index"), "a placeholder is not closed"),
    "nested": (
        template_with_variable("$(tapp.values.$(tapp.index))"),
        "a placeholder is not closed",
    ),
    "placeholder in a key": (
        template(labels={"$(tapp.name)": "x"}),
        "metadata.labels: placeholders in keys are not filled in, as in '$(tapp.name)'",
    ),
    "placeholder in a container name": (
        {"spec": {"containers": [{"name": "$(tapp.name)", "image": "a:1"}]}},
        "spec.containers[0].name is '$(tapp.name)': placeholders in this name are not filled in",
    ),
    "placeholder in a volume name": (
        template(volumes=[{"name": "$(tapp.name)", "emptyDir": {}}]),
        "spec.volumes[0].name is '$(tapp.name)'",
    ),
    "number with text": (
        template_with_text_at(HOST_PORT, "70$(tapp.index)"),
        "write one placeholder and nothing else",
    ),
    "template too large for placeholders": (
        template(annotations={"a": "x" * 65_536, "b": "$(tapp.index)"}),
        "it has placeholders and 65",
    ),
}


@pytest.mark.parametrize("case", INVALID)
def test_invalid_placeholder_sets_a_condition_and_pods_stay(case: str) -> None:
    body, message = INVALID[case]
    world = settled(replicas=2).change(template=body)
    answer = world.sync()
    found = condition(answer["status"], "TemplateNotFound")
    assert found is not None
    assert message in found["message"]
    assert found["message"].endswith("instances 0, 1 keep their pods unchanged")
    assert world.writes == []


def test_owner_references_of_a_template_are_ignored() -> None:
    body = template()
    body["metadata"]["ownerReferences"] = [{"name": "$(tapp.name)"}]
    (pod,) = new_pods(template=body).values()
    assert "ownerReferences" not in pod["metadata"]


def test_missing_value_blocks_only_its_instance() -> None:
    world = World(
        tapp(
            replicas=3,
            template=template_with_variable("$(tapp.values.a)"),
            values={"1": {"a": "x"}},
        )
    )
    answer = world.sync()
    assert list(desired(answer, "Pod")) == ["web-1"]
    found = condition(answer["status"], "CreationBlocked")
    assert found is not None
    assert found["message"] == (
        "instance 0: template 'default': spec.containers[0].env[0].value reads the value 'a', and "
        "the instance has none: set it in spec.values['0'] or spec.defaultValues "
        "(and 1 more instance)"
    )


def test_instance_whose_value_is_removed_keeps_its_pod() -> None:
    world = settled(
        replicas=2,
        template=template_with_variable("$(tapp.values.a)"),
        values={"0": {"a": "x"}, "1": {"a": "y"}},
    )
    before = world.uids()
    world.change(values={"0": {"a": "z"}})
    for _ in range(12):
        world.sync()
        world.kubelet()
    assert world.uids()["web-0"] != before["web-0"]
    assert world.uids()["web-1"] == before["web-1"]
    assert value_of(world.pod(0)) == "z"
    assert value_of(world.pod(1)) == "y"


LABEL = template(labels={"app": "$(tapp.values.a)"})


@pytest.mark.parametrize(
    ("body", "value", "cause"),
    [
        (template_with_variable("$(tapp.values.a)"), "x" * 1025, "is longer than 1024 characters"),
        (template_with_variable("$(tapp.values.a)"), "x\0y", "has a NUL"),
        (
            template_with_variable("$(tapp.values.a)" * 200),
            "x" * 1000,
            "filled in with more than 32768 characters",
        ),
        (LABEL, "a b", "a label value has at most 63"),
        (LABEL, "x" * 64, "a label value has at most 63"),
        (LABEL, "a\n", "a label value has at most 63"),
    ],
    ids=[
        "too long",
        "NUL",
        "together too long",
        "blank in a label",
        "label too long",
        "newline in a label",
    ],
)
def test_invalid_value_blocks_its_instance(body: Document, value: str, cause: str) -> None:
    message = blocked_message(template=body, values={"0": {"a": value}})
    assert cause in message
    assert len(message) < 300


UNUSED: dict[str, tuple[Document, str, str]] = {
    "unknown key": (
        {"values": {"0": {"shrad": "a"}}},
        "UnusedValues",
        "no template reads 'shrad' of spec.values or spec.defaultValues: look for a mistyped key "
        "there, or for a mistyped placeholder in the template",
    ),
    "unused default value": ({"defaultValues": {"b": "x"}}, "UnusedValues", "'b'"),
    "instance outside replicas": (
        {"values": {"7": {"a": "x"}}},
        "UnusedInstances",
        "spec.values names 7: instance numbers have to be below spec.replicas (1), so these "
        "entries have no effect",
    ),
    "invalid instance number": (
        {"values": {"x": {"a": "x"}}},
        "UnknownInstances",
        "spec.values: 'x' is not an instance number, so the entry has no effect",
    ),
}


@pytest.mark.parametrize("case", UNUSED)
def test_values_without_effect_set_a_condition(case: str) -> None:
    spec, type, message = UNUSED[case]
    spec = {"defaultValues": {}, **spec}
    spec["defaultValues"] = {"a": "d", **spec["defaultValues"]}
    found = condition(
        World(tapp(template=template_with_variable("$(tapp.values.a)"), **spec)).sync()["status"],
        type,
    )
    assert found is not None
    assert message in found["message"]


def test_value_of_a_pool_template_or_a_claim_template_does_not_count_as_unused() -> None:
    claim = claim_template(storage="$(tapp.values.size)")
    world = World(
        tapp(
            templatePool={"blue": template_with_variable("$(tapp.values.a)")},
            volumeClaimTemplates=[claim],
            values={"0": {"a": "x", "size": "3Gi"}},
        )
    )
    assert condition(world.sync()["status"], "UnusedValues") is None


def test_null_value_counts_as_absent() -> None:
    body = template_with_variable("$(tapp.values.a)")
    values = {"0": None, "1": {"a": None}, "2": {"a": "x"}}
    pods = new_pods(replicas=3, template=body, values=values, defaultValues={"a": "d", "b": None})
    assert [value_of(pods[f"web-{id}"]) for id in range(3)] == ["d", "d", "x"]


def test_placeholders_are_filled_in_in_claim_templates() -> None:
    claim = claim_template(storage="$(tapp.values.size)")
    claim["metadata"]["labels"] = {"of": "$(tapp.name)"}
    claim["spec"]["storageClassName"] = "zone-$(tapp.values.zone)"
    answer = World(
        tapp(
            replicas=2, volumeClaimTemplates=[claim], values={"1": {"size": "2Gi"}},
            defaultValues={"size": "1Gi", "zone": "a"},
        )
    ).sync()  # fmt: skip
    claims = desired(answer, "PersistentVolumeClaim")
    sizes = {name: item["spec"]["resources"]["requests"] for name, item in claims.items()}
    assert sizes == {"data-web-0": {"storage": "1Gi"}, "data-web-1": {"storage": "2Gi"}}
    assert claims["data-web-1"]["metadata"]["labels"]["of"] == "web-1"
    assert claims["data-web-1"]["spec"]["storageClassName"] == "zone-a"


def test_missing_value_of_a_claim_template_blocks_only_its_instance() -> None:
    claim = claim_template(storage="$(tapp.values.size)")
    world = World(tapp(replicas=2, volumeClaimTemplates=[claim], values={"1": {"size": "2Gi"}}))
    answer = world.sync()
    assert list(desired(answer, "Pod")) == ["web-1"]
    assert list(desired(answer, "PersistentVolumeClaim")) == ["data-web-1"]
    found = condition(answer["status"], "CreationBlocked")
    assert found is not None
    assert found["message"].startswith(
        "instance 0: claim template 'data': spec.resources.requests.storage reads the value 'size'"
    )


def writes(before: Document, after: Document) -> list[str]:
    """Returns the writes of the second sync after an edit of a TApp, sorted, without `web-`.

    `before` and `after` are fields of the spec before and after the edit.
    """
    world = settled(**before).change(**after)
    world.sync()
    world.sync()
    return sorted(line.replace("web-", "") for line in world.writes)
