"""Conditions that go together: the table, and states in which two of them once contradicted."""

from typing import Any

import pytest
from msgspec import Raw

from tapp.kube.writers import image_writers
from tapp.words.conditions import ALWAYS, HARMLESS
from tapp.words.reasons import Reason
from tests import conditions
from tests.builders import Document, completed, tapp
from tests.conditions import TABLE, contradictions
from tests.unit.world import World, condition, settled

NEVER = {"template": {"spec": {"containers": [{"name": "app", "image": "a:1"}]}}}
NEVER["template"]["spec"]["restartPolicy"] = "Never"  # type: ignore[assignment,index]


def ended(*phases: str) -> Document:
    """The status of a batch whose instances have ended like this, and are still there."""
    world = settled(replicas=len(phases), **NEVER)
    for id, phase in enumerate(phases):
        if phase:
            world.modify(id, lambda pod, phase=phase: completed(pod, phase))  # type: ignore[misc]
    status: Document = world.settle().sync()["status"]
    return status


@pytest.mark.parametrize(
    ("phases", "ready", "degraded"),
    [
        (("Succeeded", "Succeeded"), "True", "False"),
        (("Failed", "Failed"), "False", "True"),
        (("Succeeded", "Failed"), "False", "True"),
        (("Failed", ""), "False", "True"),
    ],
    ids=["all succeeded", "all failed", "one failed", "one failed and one runs"],
)
def test_a_batch_that_failed_is_not_ready(
    phases: tuple[str, ...], ready: str, degraded: str
) -> None:
    """`kubectl wait --for=condition=Ready` would have returned."""
    found = {item["type"]: item for item in ended(*phases)["conditions"]}
    assert (found["Ready"]["status"], found["Degraded"]["status"]) == (ready, degraded)
    assert found["Available"]["status"] == "True"
    assert (found["Progressing"]["status"], found["Progressing"]["reason"]) == ("False", "Complete")
    said = "as the spec asks" in found["Progressing"]["message"]
    assert said == (ready == "True")


REFUSED: dict[str, Any] = {
    "UnknownStatuses": ({"statuses": {"0": "killed"}}, "False"),
    "UnknownInstances": ({"templates": {"x": "default"}}, "False"),
    "UnusedInstances": ({"templates": {"7": "default"}}, "True"),
    "RollingTemplateUnused": ({"updateStrategy": {"template": "typo"}}, "True"),
}


@pytest.mark.parametrize("type", REFUSED)
def test_what_is_refused_is_not_called_ready_unless_it_is_harmless(type: str) -> None:
    spec, ready = REFUSED[type]
    status = settled(replicas=2).change(**spec).settle().sync()["status"]
    assert condition(status, type) is not None
    assert condition(status, "Ready")["status"] == ready  # type: ignore[index]


def test_a_stopped_tapp_is_ready() -> None:
    status = settled(replicas=2).change(statuses={"0": "Killed"}).settle().sync()["status"]
    assert condition(status, "Ready")["status"] == "True"  # type: ignore[index]


def test_the_table_speaks_of_the_conditions_that_there_are() -> None:
    assert tuple(map(str, ALWAYS)) == conditions.ALWAYS
    assert {str(type) for type in HARMLESS} == conditions.HARMLESS
    words = {word for row in TABLE for word in row[0].split()[1:]}
    assert words == {
        Reason.COMPLETE,
        Reason.PAUSED,
        Reason.PROGRESS_DEADLINE_EXCEEDED,
        Reason.STUCK,
    }


def test_what_an_earlier_release_answered_contradicts_itself() -> None:
    """The check sees what it is there for."""
    status = ended("Failed", "Failed")
    changes = {"Ready": ("True", "AsSpecified", "every instance is as the spec asks")}
    for item in status["conditions"]:
        if item["type"] in changes:
            item["status"], item["reason"], item["message"] = changes[item["type"]]
    assert contradictions(status)


# --- images that somebody else has set ----------------------------------------------------------


def edited(manager: str = "kubectl-set", image: str = "hand:1") -> World:
    """Two instances; in the pod of one somebody has set another image, by whatever means."""
    world = settled(replicas=2)

    def by_hand(pod: Document) -> Document:
        ours = {"f:metadata": {"f:labels": {"f:tapp_template_hash_key": {}}}}
        field = {"f:spec": {"f:containers": {'k:{"name":"app"}': {"f:image": {}}}}}
        entry = {"operation": "Update", "apiVersion": "v1", "time": "2026-01-05T10:30:00Z"}
        fields = [
            {**entry, "manager": "metacontroller", "fieldsV1": ours | ({} if manager else field)},
            *([{**entry, "manager": manager, "fieldsV1": field}] if manager else []),
            {**entry, "manager": "kubelet", "subresource": "status", "fieldsV1": {"f:status": {}}},
        ]
        container = {**pod["spec"]["containers"][0], "image": image}
        spec = {**pod["spec"], "containers": [container, *pod["spec"]["containers"][1:]]}
        return {**pod, "metadata": {**pod["metadata"], "managedFields": fields}, "spec": spec}

    world.modify(1, by_hand).kubelet()
    return world


def test_an_image_that_was_set_by_hand_is_said_and_left() -> None:
    world = edited()
    status = world.sync()["status"]
    assert [write for write in world.writes if not write.startswith("update")] == []
    assert world.pod(1)["spec"]["containers"][0]["image"] == "hand:1"
    assert world.decisions() == {0: "Keep/UpToDate", 1: "Keep/ImagesEdited"}
    found = condition(status, "ImagesEdited")
    assert found is not None
    for part in ("instance 1: container app", "hand:1", "kubectl-set", "nginx:1.25"):
        assert part in found["message"]
    assert condition(status, "Ready")["reason"] == "ImagesEdited"  # type: ignore[index]


@pytest.mark.parametrize("case", ["admission", "no managed fields"])
def test_an_image_that_admission_rewrote_is_nobody_s_edit(case: str) -> None:
    world = edited(manager="")
    if case == "no managed fields":
        world = edited()
        world.modify(1, lambda pod: {**pod, "metadata": {**pod["metadata"], "managedFields": []}})
    assert world.decisions() == {0: "Keep/UpToDate", 1: "Keep/UpToDate"}


def test_an_edit_is_over_when_the_template_says_the_same() -> None:
    world = edited()
    template = {**world.parent["spec"]["template"]}
    containers = [{**template["spec"]["containers"][0], "image": "hand:1"}]
    world.change(template={**template, "spec": {**template["spec"], "containers": containers}})
    world.settle()
    assert set(world.decisions().values()) == {"Keep/UpToDate"}


JUNK = [
    b"null",
    b"[{}]",
    b'[{"fieldsV1":[]}]',
    b"{",
    b'[{"fieldsV1":{"f:spec":{"f:containers":{"k:x":{"f:image":{}}}}}}]',
]


@pytest.mark.parametrize("junk", JUNK)
def test_managed_fields_of_any_shape_say_nothing(junk: bytes) -> None:
    assert image_writers(Raw(junk)) == {}


# --- claims that are somebody else's --------------------------------------------------------------


def kept_from_before() -> World:
    """A TApp that was deleted and made again: its pods use claims that it cannot see."""
    claim = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    world = World(tapp(replicas=2, volumeClaimTemplates=[claim])).settle()
    for pod in world.pods.values():
        assert pod["spec"]["nodeName"]
    world.claims = {}
    return world


def test_claims_that_pods_use_and_the_tapp_does_not_have_are_told_of() -> None:
    world = kept_from_before()
    before = world.hook.now
    status = world.sync()["status"]
    assert list(status["notOwned"].values()) == ["0,1"]
    assert condition(status, "ClaimsNotOwned") is None  # a cache may lag
    assert world.claims == {}
    world.hook.now = before + 30
    status = world.sync()["status"]
    found = condition(status, "ClaimsNotOwned")
    assert found is not None
    for part in ("0, 1 since", "data-web-0, data-web-1", "kubectl tapp adopt web"):
        assert part in found["message"]
    for type, value in (("Degraded", "True"), ("Ready", "False")):
        shown = condition(status, type)
        assert shown is not None
        assert (shown["status"], shown["reason"]) == (value, "ClaimsNotOwned")


def test_a_claim_that_appears_in_time_was_only_late() -> None:
    world = kept_from_before()
    whole = World(world.parent).settle().claims
    world.sync()
    world.claims = whole
    world.hook.now += 31
    status = world.sync()["status"]
    assert "notOwned" not in status
    assert condition(status, "Ready")["status"] == "True"  # type: ignore[index]


def test_a_claim_template_that_came_later_is_in_no_pod_and_missing_in_none() -> None:
    claim = {"metadata": {"name": "late"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    world = settled(replicas=2).change(volumeClaimTemplates=[claim])
    assert "notOwned" not in world.sync()["status"]
