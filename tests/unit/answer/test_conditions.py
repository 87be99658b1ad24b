"""Tests that conditions are consistent: the table of allowed combinations, and former
contradictions.
"""

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


def status_after_end(*phases: str) -> Document:
    """Returns the status of a batch whose instances have ended in these phases; "" for one that
    still runs.
    """
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
    ids=["all succeeded", "all failed", "one failed", "one failed, one running"],
)
def test_batch_with_a_failed_instance_is_not_ready(
    phases: tuple[str, ...], ready: str, degraded: str
) -> None:
    """A TApp with a failed instance is Degraded and not Ready, although its rollout is complete.

    Otherwise `kubectl wait --for=condition=Ready` would succeed.
    """
    found = {item["type"]: item for item in status_after_end(*phases)["conditions"]}
    assert found["Ready"]["status"] == ready
    assert found["Degraded"]["status"] == degraded
    assert found["Available"]["status"] == "True"
    assert found["Progressing"]["status"] == "False"
    assert found["Progressing"]["reason"] == "Complete"
    matches_spec = "as the spec asks" in found["Progressing"]["message"]
    assert matches_spec == (ready == "True")


REFUSED: dict[str, Any] = {
    "UnknownStatuses": ({"statuses": {"0": "killed"}}, "False"),
    "UnknownInstances": ({"templates": {"x": "default"}}, "False"),
    "UnusedInstances": ({"templates": {"7": "default"}}, "True"),
    "RollingTemplateUnused": ({"updateStrategy": {"template": "typo"}}, "True"),
}


@pytest.mark.parametrize("type", REFUSED)
def test_tapp_with_a_refusal_is_ready_only_if_the_refusal_is_harmless(type: str) -> None:
    spec, ready = REFUSED[type]
    status = settled(replicas=2).change(**spec).settle().sync()["status"]
    assert condition(status, type) is not None
    assert condition(status, "Ready")["status"] == ready  # type: ignore[index]


def test_tapp_with_a_killed_instance_is_ready() -> None:
    status = settled(replicas=2).change(statuses={"0": "Killed"}).settle().sync()["status"]
    assert condition(status, "Ready")["status"] == "True"  # type: ignore[index]


def test_table_has_the_conditions_and_reasons_of_the_service() -> None:
    assert tuple(map(str, ALWAYS)) == conditions.ALWAYS
    assert {str(type) for type in HARMLESS} == conditions.HARMLESS
    words = {word for row in TABLE for word in row[0].split()[1:]}
    assert words == {
        Reason.COMPLETE,
        Reason.PAUSED,
        Reason.PROGRESS_DEADLINE_EXCEEDED,
        Reason.ROLLED_BACK,
        Reason.STUCK,
    }


def test_check_finds_the_contradiction_of_an_earlier_release() -> None:
    status = status_after_end("Failed", "Failed")
    changes = {"Ready": ("True", "AsSpecified", "every instance is as the spec asks")}
    for item in status["conditions"]:
        if item["type"] in changes:
            item["status"], item["reason"], item["message"] = changes[item["type"]]
    assert contradictions(status)


# --- images that somebody else has changed --------------------------------------------------------


def tapp_with_edited_image(manager: str = "kubectl-set", image: str = "hand:1") -> World:
    """Returns a TApp with two instances; in the pod of instance 1 somebody has set another image.

    `manager` is the field manager of that edit; "" stands for Metacontroller itself.
    """
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


def test_image_that_somebody_has_changed_sets_a_condition_and_stays() -> None:
    world = tapp_with_edited_image()
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
def test_image_that_admission_has_rewritten_sets_no_condition(case: str) -> None:
    world = tapp_with_edited_image(manager="")
    if case == "no managed fields":
        world = tapp_with_edited_image()
        world.modify(1, lambda pod: {**pod, "metadata": {**pod["metadata"], "managedFields": []}})
    assert world.decisions() == {0: "Keep/UpToDate", 1: "Keep/UpToDate"}


def test_condition_ends_when_the_template_has_the_same_image() -> None:
    world = tapp_with_edited_image()
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


@pytest.mark.parametrize(
    "junk", JUNK, ids=["null", "empty entry", "fields are a list", "truncated", "unknown key"]
)
def test_invalid_managed_fields_show_no_edit(junk: bytes) -> None:
    assert image_writers(Raw(junk)) == {}


# --- claims that the TApp does not own ------------------------------------------------------------


def recreated_tapp() -> World:
    """Returns a TApp that was created again: its pods use claims that it does not own."""
    claim = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    world = World(tapp(replicas=2, volumeClaimTemplates=[claim])).settle()
    for pod in world.pods.values():
        assert pod["spec"]["nodeName"]
    world.claims = {}
    return world


def test_claims_that_pods_use_and_the_tapp_does_not_own_set_a_condition() -> None:
    world = recreated_tapp()
    before = world.hook.now
    status = world.sync()["status"]
    assert list(status["notOwned"].values()) == ["0,1"]
    assert condition(status, "ClaimsNotOwned") is None  # the cache may be stale
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
        assert shown["status"] == value
        assert shown["reason"] == "ClaimsNotOwned"


def test_claim_that_appears_within_half_a_minute_sets_no_condition() -> None:
    world = recreated_tapp()
    claims = World(world.parent).settle().claims
    world.sync()
    world.claims = claims
    world.hook.now += 31
    status = world.sync()["status"]
    assert "notOwned" not in status
    assert condition(status, "Ready")["status"] == "True"  # type: ignore[index]


def test_new_claim_template_does_not_count_as_a_missing_claim() -> None:
    claim = {"metadata": {"name": "logs"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    world = settled(replicas=2).change(volumeClaimTemplates=[claim])
    assert "notOwned" not in world.sync()["status"]
