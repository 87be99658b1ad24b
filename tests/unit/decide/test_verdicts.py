"""The rule that applies first to one instance."""

from typing import Any

import pytest

from tests.builders import Document, completed, running, tapp, template, terminating
from tests.reading import desired
from tests.unit.world import World, condition, settled

NEW = template("nginx:2", container={"command": ["run"]})


def verdict(world: World, id: int = 0) -> str:
    """The decision on one instance."""
    return world.decisions()[id]


# --- each rule, and the one before it that would hide it ------------------------------------------


def test_1_an_instance_beyond_replicas_goes_whatever_its_pod_does() -> None:
    for change in (terminating, lambda pod: completed(pod, "Failed"), lambda pod: pod):
        world = settled(replicas=2).change(replicas=1).modify(1, change)
        assert verdict(world, 1) == "Delete/ScaledDown"


def test_1_a_killed_instance_goes_even_if_its_template_cannot_be_found() -> None:
    world = settled().change(statuses={"0": "Killed"}, defaultTemplateName="typo")
    assert verdict(world) == "Delete/Killed"


def test_1_a_killed_instance_without_a_pod_stays_without() -> None:
    assert verdict(World(tapp(statuses={"0": "Killed"}))) == "Absent/Killed"


def test_2_an_instance_without_a_pod_gets_one() -> None:
    assert verdict(World(tapp())) == "Create/NoPod"


def test_2_a_template_that_cannot_be_found_creates_nothing() -> None:
    world = World(tapp(defaultTemplateName="typo"))
    assert verdict(world) == "Absent/TemplateNotFound"
    assert desired(world.sync(), "Pod") == {}


def test_3_a_terminating_pod_is_waited_for_although_its_template_changed() -> None:
    world = settled().modify(0, terminating).change(template=NEW)
    assert verdict(world) == "Keep/Terminating"


def test_3_a_terminating_pod_is_waited_for_although_it_has_completed() -> None:
    world = settled().modify(0, lambda pod: terminating(completed(pod, "Failed")))
    assert verdict(world) == "Keep/Terminating"


def test_5_a_completed_pod_is_replaced_before_anyone_asks_for_its_revision() -> None:
    world = settled().modify(0, lambda pod: completed(pod, "Failed")).change(template=NEW)
    assert verdict(world) == "Delete/Completed"


def test_5_a_completed_pod_without_a_template_is_kept() -> None:
    """Its replacement could not be made."""
    world = settled().modify(0, lambda pod: completed(pod, "Failed"))
    world.change(defaultTemplateName="typo")
    assert verdict(world) == "Keep/TemplateNotFound"


def test_6_a_template_that_cannot_be_found_keeps_what_is_there() -> None:
    assert verdict(settled().change(defaultTemplateName="typo")) == "Keep/TemplateNotFound"


def test_7_a_pod_of_its_template_is_kept_however_it_does() -> None:
    world = settled().modify(0, lambda pod: running(pod, ready=False))
    assert verdict(world) == "Keep/UpToDate"


def test_8_images_and_metadata_are_updated_in_place() -> None:
    assert (
        verdict(settled().change(template=template("nginx:2"))) == "UpdateInPlace/TemplateChanged"
    )
    changed = template(labels={"app": "web", "tier": "front"})
    assert verdict(settled().change(template=changed)) == "UpdateInPlace/TemplateChanged"


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(template(container={"command": ["run"]}), id="a command"),
        pytest.param(template(container={"env": [{"name": "A", "value": "1"}]}), id="a variable"),
        pytest.param(template(sidecars=[{"name": "side", "image": "s:1"}]), id="another container"),
        pytest.param(template(nodeSelector={"disk": "ssd"}), id="a node selector"),
        pytest.param(
            template(container={"resources": {"requests": {"cpu": "2"}}}), id="a resource request"
        ),
        pytest.param(template(terminationGracePeriodSeconds=5), id="a grace period"),
        pytest.param(template(tolerations=[{"operator": "Exists"}]), id="a toleration"),
        pytest.param(template("nginx:2", priorityClassName="high"), id="an image and more"),
    ],
)
def test_8_anything_else_makes_a_new_pod(changed: Document) -> None:
    world = settled()
    before = world.uids()
    assert verdict(world.change(template=changed)) == "Recreate/TemplateChanged"
    world.settle()
    assert world.uids() != before
    assert verdict(world) == "Keep/UpToDate"


def test_recreating_omits_the_pod_first_and_creates_it_when_it_is_gone() -> None:
    world = settled().change(template=NEW)
    assert desired(world.sync(), "Pod") == {}
    assert verdict(world) == "Keep/Terminating"
    world.kubelet()
    assert verdict(world) == "Create/NoPod"


# --- rules 2 and 6, more closely: a typo never deletes --------------------------------------------

BROKEN: dict[str, Any] = {
    "a default name that is not in the pool": {"defaultTemplateName": "typo"},
    "the old spelling of the default name": {"DefaultTemplateName": "typo"},
    "a name in templates": {"templates": {"0": "typo", "1": "typo"}},
    "no template at all": {"template": None},
    "an empty template": {"template": {}},
    "a template without a spec": {"template": {"metadata": {}}},
    "a template without containers": {"template": {"spec": {"containers": []}}},
    "a container without a name": {"template": {"spec": {"containers": [{"image": "a"}]}}},
    "a container of a wrong type": {"template": {"spec": {"containers": ["a"]}}},
    "containers of a wrong type": {"template": {"spec": {"containers": "a"}}},
    "labels of a wrong type": {"template": {**template(), "metadata": {"labels": {"a": 1}}}},
    "a spec of a wrong type": {"template": {"spec": ["containers"]}},
}


@pytest.mark.parametrize("spec", BROKEN.values(), ids=BROKEN.keys())
def test_a_template_that_makes_no_sense_deletes_nothing_and_is_named(spec: Document) -> None:
    world = settled(replicas=2)
    before = world.uids()
    world.change(**spec)
    answer = world.sync()
    assert world.writes == []
    assert world.uids() == before
    found = condition(answer, "TemplateNotFound")
    assert found is not None
    assert "instances 0, 1" in found["message"]
    degraded = condition(answer, "Degraded")
    assert degraded is not None
    assert degraded["status"] == "True"


def test_a_typo_for_one_instance_does_not_stop_the_others() -> None:
    world = settled(replicas=3).change(
        template=template("nginx:2"), templates={"0": "typo"}, updateStrategy={"maxUnavailable": 3}
    )
    assert world.decisions() == {
        0: "Keep/TemplateNotFound",
        1: "UpdateInPlace/TemplateChanged",
        2: "UpdateInPlace/TemplateChanged",
    }


def test_correcting_the_typo_touches_no_pod() -> None:
    world = settled(replicas=2)
    before = world.uids()
    world.change(defaultTemplateName="typo").settle()
    world.change(defaultTemplateName=None).settle()
    assert world.uids() == before
    assert condition(world.parent["status"], "TemplateNotFound") is None


# --- children that are not ours to judge ----------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["web-x", "web-007", "web-", "web-0-1", "other", "web-99999999999"]
)
def test_a_pod_that_is_no_instance_is_kept_and_named(name: str) -> None:
    world = settled()
    stranger = world.pod(0)
    stranger = {**stranger, "metadata": {**stranger["metadata"], "name": name, "uid": "u-9"}}
    world.pods[name] = stranger
    answer = world.sync()
    assert name in desired(answer, "Pod")
    found = condition(answer, "ForeignPods")
    assert found is not None
    assert name in found["message"]


def test_keys_that_are_no_instance_numbers_are_named() -> None:
    world = World(tapp(templates={"zero": "default"}, statuses={"01": "Killed"}))
    found = condition(world.sync(), "UnknownInstances")
    assert found is not None
    assert sorted(world.pods) == ["web-0"]


def test_every_verdict_has_a_reason_and_a_message() -> None:
    world = settled(replicas=3).modify(0, terminating).change(template=NEW, replicas=4)
    plan = world.hook.answer("/plan", world.request())
    assert all(item["reason"] and item["message"] for item in plan["instances"])
    assert [item["id"] for item in plan["instances"]] == [0, 1, 2, 3]
