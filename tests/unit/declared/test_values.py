"""Instances' own values: what placeholders become, where they may stand, and what is a mistake."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings

from tests.builders import Document, claim_template, tapp, template
from tests.reading import desired
from tests.sizes import size
from tests.unit.strategies import templates
from tests.unit.world import Hook, World, condition, settled, with_spec

WRITTEN = "apps.tkestack.io/written-template"
HASH = "tapp_template_hash_key"


def env(value: str, **more: Any) -> Document:
    """A template whose container has this variable."""
    return template(container={"env": [{"name": "OWN", "value": value}]}, **more)


def created(**spec: Any) -> dict[str, Document]:
    """The pods that the first sync makes."""
    return desired(World(tapp(**spec)).sync(), "Pod")


def value_of(pod: Document) -> Any:
    return pod["spec"]["containers"][0]["env"][0].get("value")


def blocked(**spec: Any) -> str:
    """The message of `CreationBlocked`, "" where there is none."""
    found = condition(World(tapp(**spec)).sync()["status"], "CreationBlocked")
    return "" if found is None else str(found["message"])


TEXTS = {
    "its number": ("$(tapp.index)", "1"),
    "its name": ("$(tapp.name)", "web-1"),
    "its namespace": ("$(tapp.namespace)", "shop"),
    "its value": ("$(tapp.values.shard)", "b"),
    "several in a text": ("x-$(tapp.values.shard)$(tapp.index).$(tapp.name)", "x-b1.web-1"),
    "the text itself": ("$$(tapp.index)", "$(tapp.index)"),
    "the text and the number": ("$$(tapp.index)=$(tapp.index)", "$(tapp.index)=1"),
    "Kubernetes' own": ("$(HOME) $$(HOME) $(tapp) $(tapp_x)", "$(HOME) $$(HOME) $(tapp) $(tapp_x)"),
    "Kubernetes' own beside it": ("$(HOME)/$(tapp.index)", "$(HOME)/1"),
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_placeholder_becomes_what_the_instance_has(case: str) -> None:
    text, expected = TEXTS[case]
    values = {"0": {"shard": "a"}, "1": {"shard": "b"}} if "values" in text else None
    pods = created(replicas=2, template=env(text), values=values)
    assert value_of(pods["web-1"]) == expected


@pytest.mark.parametrize(
    "value",
    ["$(tapp.index)", "$$(tapp.index)", "$(tapp.values.a)", 'a "quoted"\n\ttext', "\\", "é", "  "],
)
def test_what_is_filled_in_is_not_looked_at_again(value: str) -> None:
    pods = created(template=env("<$(tapp.values.a)>"), values={"0": {"a": value}})
    assert value_of(pods["web-0"]) == f"<{value}>"


def test_an_instance_that_says_nothing_has_the_default() -> None:
    body = env("$(tapp.values.a)-$(tapp.values.b)")
    pods = created(
        replicas=3, template=body, values={"1": {"a": "1"}, "2": {"a": ""}},
        defaultValues={"a": "x", "b": "y"},
    )  # fmt: skip
    assert [value_of(pods[f"web-{id}"]) for id in range(3)] == ["x-y", "1-y", "-y"]


def test_every_text_of_a_template_may_have_one() -> None:
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
    (pod,) = created(template=body, values={"0": {"a": "1024"}}).values()
    assert "$(" not in json.dumps(pod)
    assert pod["metadata"]["labels"]["shard"] == "1024"
    assert pod["spec"]["volumes"][0]["configMap"] == {"name": "web-0"}
    memory = pod["spec"]["containers"][0]["resources"]["requests"]["memory"]
    assert memory == "1Ti"


def numbered(place: str, text: str) -> Document:
    """A template that has a text where Kubernetes has a number."""
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
def test_a_placeholder_alone_is_a_number_where_one_is_wanted(place: str) -> None:
    body = numbered(place, "$(tapp.values.n)")
    (pod,) = created(template=body, values={"0": {"n": "7003"}}).values()
    node: Any = pod["spec"]
    for part in place.split("."):
        node = node[int(part)] if part.isdigit() else node[part]
    assert (node, type(node)) == (NUMBERS[place], type(NUMBERS[place]))


def test_a_port_may_have_a_name() -> None:
    body = numbered("containers.0.readinessProbe.httpGet.port", "$(tapp.values.n)")
    (pod,) = created(template=body, values={"0": {"n": "http"}}).values()
    assert pod["spec"]["containers"][0]["readinessProbe"]["httpGet"]["port"] == "http"


HOST_PORT = "containers.0.ports.0.hostPort"


NO_NUMBERS = ["x", "", "-1", "65536", "1.5", "007", "1" * 400, "\uff17", "1\n"]


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_number_there_blocks_its_instance(value: str) -> None:
    said = blocked(template=numbered(HOST_PORT, "$(tapp.values.n)"), values={"0": {"n": value}})
    assert said.startswith("instance 0: template 'default': spec.containers[0].ports[0].hostPort ")
    assert said.endswith("it takes a whole number from 0 to 65535")
    assert len(said) < 250


WRONG = {
    "unknown": (env("$(tapp.indx)"), "there is no placeholder '$(tapp.indx)'"),
    "without a key": (env("$(tapp.values.)"), "there is no placeholder '$(tapp.values.)'"),
    "values alone": (env("$(tapp.values)"), "there is no placeholder '$(tapp.values)'"),
    "a key with a blank": (env("$(tapp.values.a b)"), "there is no placeholder"),
    "not closed": (env("$(tapp.index"), "a placeholder is not closed"),
    "nested": (env("$(tapp.values.$(tapp.index))"), "a placeholder is not closed"),
    "in a key": (
        template(labels={"$(tapp.name)": "x"}),
        "metadata.labels: the key '$(tapp.name)' is never filled in",
    ),
    "a container's name": (
        {"spec": {"containers": [{"name": "$(tapp.name)", "image": "a:1"}]}},
        "spec.containers[0].name is '$(tapp.name)': this name is never filled in",
    ),
    "a volume's name": (
        template(volumes=[{"name": "$(tapp.name)", "emptyDir": {}}]),
        "spec.volumes[0].name is '$(tapp.name)'",
    ),
    "more than a placeholder as a number": (
        numbered(HOST_PORT, "70$(tapp.index)"),
        "write nothing but one placeholder",
    ),
    "too large to be each instance's own": (
        template(annotations={"a": "x" * 65_536, "b": "$(tapp.index)"}),
        "it has placeholders, and 65",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_placeholder_that_is_none_is_said_of_its_template(case: str) -> None:
    """And a pod that is there stays."""
    body, said = WRONG[case]
    world = settled(replicas=2).change(template=body)
    answer = world.sync()
    found = condition(answer["status"], "TemplateNotFound")
    assert found is not None
    assert said in found["message"]
    assert found["message"].endswith("instances 0, 1 are kept as they are")
    assert world.writes == []


def test_an_owner_is_no_part_of_a_template() -> None:
    body = template()
    body["metadata"]["ownerReferences"] = [{"name": "$(tapp.name)"}]
    (pod,) = created(template=body).values()
    assert "ownerReferences" not in pod["metadata"]


def test_an_instance_without_a_value_is_blocked_and_the_others_go_on() -> None:
    world = World(tapp(replicas=3, template=env("$(tapp.values.a)"), values={"1": {"a": "x"}}))
    answer = world.sync()
    assert list(desired(answer, "Pod")) == ["web-1"]
    found = condition(answer["status"], "CreationBlocked")
    assert found is not None
    assert found["message"] == (
        "instance 0: template 'default': spec.containers[0].env[0].value reads the value 'a', and "
        "the instance has none: set it in spec.values['0'] or spec.defaultValues "
        "(and 1 more instances)"
    )


def test_an_instance_that_loses_its_value_keeps_its_pod() -> None:
    world = settled(
        replicas=2, template=env("$(tapp.values.a)"), values={"0": {"a": "x"}, "1": {"a": "y"}}
    )
    before = world.uids()
    world.change(values={"0": {"a": "z"}})
    for _ in range(12):
        world.sync()
        world.kubelet()
    assert (world.uids()["web-0"] != before["web-0"], world.uids()["web-1"]) == (
        True, before["web-1"],
    )  # fmt: skip
    assert value_of(world.pod(0)) == "z"
    assert value_of(world.pod(1)) == "y"


LABEL = template(labels={"app": "$(tapp.values.a)"})


@pytest.mark.parametrize(
    ("body", "value", "said"),
    [
        (env("$(tapp.values.a)"), "x" * 1025, "is longer than 1024 characters"),
        (env("$(tapp.values.a)"), "x\0y", "has a NUL"),
        (env("$(tapp.values.a)" * 200), "x" * 1000, "become more than 32768 characters"),
        (LABEL, "a b", "a label takes at most 63"),
        (LABEL, "x" * 64, "a label takes at most 63"),
        (LABEL, "a\n", "a label takes at most 63"),
    ],
    ids=["long", "NUL", "long together", "blank in a label", "long label", "newline in a label"],
)
def test_a_value_that_no_template_may_hold_blocks_its_instance(
    body: Document, value: str, said: str
) -> None:
    message = blocked(template=body, values={"0": {"a": value}})
    assert said in message
    assert len(message) < 300


UNUSED: dict[str, tuple[Document, str, str]] = {
    "a mistyped key": (
        {"values": {"0": {"shrad": "a"}}},
        "UnusedValues",
        "spec.values or spec.defaultValues: no template reads 'shrad'",
    ),
    "a default that nobody reads": ({"defaultValues": {"b": "x"}}, "UnusedValues", "'b'"),
    "a number beyond replicas": (
        {"values": {"7": {"a": "x"}}},
        "UnusedInstances",
        "spec.values: 7: not below spec.replicas (1), so without effect",
    ),
    "no number": (
        {"values": {"x": {"a": "x"}}},
        "UnknownInstances",
        "spec.values: 'x' is no instance's number",
    ),
}


@pytest.mark.parametrize("case", UNUSED)
def test_values_that_reach_nobody_are_told_of(case: str) -> None:
    spec, type, said = UNUSED[case]
    spec = {"defaultValues": {}, **spec}
    spec["defaultValues"] = {"a": "d", **spec["defaultValues"]}
    found = condition(World(tapp(template=env("$(tapp.values.a)"), **spec)).sync()["status"], type)
    assert found is not None
    assert said in found["message"]


def test_a_value_that_only_another_template_or_a_claim_reads_is_none_of_these() -> None:
    claim = claim_template(storage="$(tapp.values.size)")
    world = World(
        tapp(
            templatePool={"blue": env("$(tapp.values.a)")},
            volumeClaimTemplates=[claim],
            values={"0": {"a": "x", "size": "3Gi"}},
        )
    )
    assert condition(world.sync()["status"], "UnusedValues") is None


def test_null_is_no_value() -> None:
    body = env("$(tapp.values.a)")
    values = {"0": None, "1": {"a": None}, "2": {"a": "x"}}
    pods = created(replicas=3, template=body, values=values, defaultValues={"a": "d", "b": None})
    assert [value_of(pods[f"web-{id}"]) for id in range(3)] == ["d", "d", "x"]


def test_a_claim_template_has_placeholders_too() -> None:
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


def test_without_a_value_for_its_claim_an_instance_is_blocked() -> None:
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


# --- what an edit does ----------------------------------------------------------------------------


def writes(before: Document, after: Document) -> list[str]:
    """Writes of the first sync after an edit of a TApp at rest."""
    world = settled(**before).change(**after)
    world.sync()
    world.sync()
    return sorted(line.replace("web-", "") for line in world.writes)


OWN = {"0": {"a": "x"}, "1": {"a": "y"}}


def test_a_value_that_no_template_uses_changes_nothing() -> None:
    world = settled(replicas=2, template=env("$(tapp.index)"))
    world.change(values=OWN)
    world.sync()
    assert world.writes == []


def test_another_value_reaches_its_instance_alone() -> None:
    world = settled(replicas=2, template=env("$(tapp.values.a)"), values=OWN)
    before = world.uids()
    world.change(values={**OWN, "1": {"a": "z"}}).settle()
    after = world.uids()
    assert after["web-0"] == before["web-0"]
    assert after["web-1"] != before["web-1"]


@pytest.mark.parametrize(
    "body",
    [
        template("web:$(tapp.values.a)"),
        template(labels={"app": "web", "shard": "$(tapp.values.a)"}),
        template(annotations={"note": "$(tapp.values.a)"}),
    ],
    ids=["image", "label", "annotation"],
)
def test_a_value_that_reaches_an_image_or_metadata_is_an_update_in_place(body: Document) -> None:
    world = settled(replicas=2, template=body, values=OWN)
    before = world.uids()
    world.change(values={**OWN, "1": {"a": "z"}}).settle()
    assert world.uids() == before
    assert '"z"' in json.dumps(world.pod(1)) or "web:z" in json.dumps(world.pod(1))


def test_a_template_of_literals_that_becomes_one_with_values_restarts_nothing() -> None:
    """From many templates to one, whatever their names were."""
    pool = {"a": env("x"), "b": env("y")}
    world = settled(replicas=2, templatePool=pool, templates={"0": "a", "1": "b"}, template=None)
    world.change(
        templatePool=None, templates=None, template=env("$(tapp.values.a)"), values=OWN
    ).sync()
    assert world.writes == []
    assert world.hook.decisions(world.request()) == {0: "Keep/UpToDate", 1: "Keep/UpToDate"}


def test_equal_instances_share_a_revision_that_leads_back_to_what_was_written() -> None:
    values = {"0": {"a": "x"}, "1": {"a": "x"}, "2": {"a": "y"}}
    world = World(
        tapp(replicas=3, template=env("$(tapp.values.a)"), values=values), history=True
    ).settle()
    pods = [world.pod(id)["metadata"] for id in range(3)]
    hashes = [pod["labels"][HASH] for pod in pods]
    assert hashes[0] == hashes[1] != hashes[2]
    (record,) = world.revisions.values()
    of = {pod["annotations"][WRITTEN].split()[0] for pod in pods}
    assert of == {record["metadata"]["labels"][HASH]}


def test_a_pod_of_a_template_without_placeholders_has_no_such_annotation() -> None:
    (pod,) = created().values()
    assert WRITTEN not in pod["metadata"]["annotations"]


@settings(max_examples=size(15, 60))
@given(templates())
def test_a_template_without_placeholders_is_as_it_is(body: Document) -> None:
    """Values or not: the same answer, byte for byte."""
    parent, hook = tapp(replicas=2, template=body), Hook()
    before = World(parent, hook=hook).request()
    after = deepcopy(before)
    after["parent"] = with_spec(parent, values={"0": {"a": "x"}}, defaultValues={"b": "y"})
    after["parent"]["metadata"]["generation"] = parent["metadata"]["generation"]
    one, other = hook.sync(before), hook.sync(after)
    assert other["children"] == one["children"]


def texts_as_values(part: Any, own: dict[str, str], key: str = "") -> Any:
    """A copy in which a placeholder stands for each text but names; `own` gets the texts."""
    if isinstance(part, dict):
        return {name: texts_as_values(item, own, name) for name, item in part.items()}
    if isinstance(part, list):
        return [texts_as_values(item, own, key) for item in part]
    if not isinstance(part, str) or key == "name" or "\0" in part:
        return part
    own[str(len(own))] = part
    return f"$(tapp.values.{len(own) - 1})"


@settings(max_examples=size(10, 40))
@given(templates())
def test_a_template_that_is_filled_in_is_as_if_it_was_written_so(body: Document) -> None:
    """The same revisions and the same pod."""
    own: dict[str, str] = {}
    holed = texts_as_values(body, own)
    (plain,) = created(replicas=1, template=body).values()
    (filled,) = created(replicas=1, template=holed, defaultValues=own).values()
    assert filled["metadata"]["labels"] == plain["metadata"]["labels"]
    assert filled["spec"] == plain["spec"]
