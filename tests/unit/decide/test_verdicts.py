"""Tests the verdict on one instance, which the first rule that applies gives.

The number in a test's name is that of the rule in `judge` (tapp/decide/judge.py).
"""

from typing import Any

import pytest

from tests.builders import Document, completed, running, tapp, template, terminating
from tests.hook_calls import desired
from tests.unit.world import World, condition, settled

NEW = template("nginx:2", container={"command": ["run"]})


def verdict(world: World, id: int = 0) -> str:
    """Returns the decision of the next sync on an instance, as `Action/Reason`."""
    return world.decisions()[id]


# --- each rule, and its precedence ----------------------------------------------------------------


def test_1_instance_outside_replicas_is_deleted() -> None:
    for change in (terminating, lambda pod: completed(pod, "Failed"), lambda pod: pod):
        world = settled(replicas=2).change(replicas=1).modify(1, change)
        assert verdict(world, 1) == "Delete/ScaledDown"


def test_1_killed_instance_is_deleted_although_its_template_does_not_exist() -> None:
    world = settled().change(statuses={"0": "Killed"}, defaultTemplateName="typo")
    assert verdict(world) == "Delete/Killed"


def test_1_killed_instance_without_a_pod_gets_none() -> None:
    assert verdict(World(tapp(statuses={"0": "Killed"}))) == "Absent/Killed"


def test_2_instance_without_a_pod_gets_one() -> None:
    assert verdict(World(tapp())) == "Create/NoPod"


def test_2_instance_gets_no_pod_if_its_template_does_not_exist() -> None:
    world = World(tapp(defaultTemplateName="typo"))
    assert verdict(world) == "Absent/TemplateNotFound"
    assert desired(world.sync(), "Pod") == {}


def test_3_terminating_pod_stays_although_its_template_changed() -> None:
    world = settled().modify(0, terminating).change(template=NEW)
    assert verdict(world) == "Keep/Terminating"


def test_3_terminating_pod_stays_although_it_has_ended() -> None:
    world = settled().modify(0, lambda pod: terminating(completed(pod, "Failed")))
    assert verdict(world) == "Keep/Terminating"


def test_5_pod_that_has_ended_is_deleted_before_its_template_is_compared() -> None:
    world = settled().modify(0, lambda pod: completed(pod, "Failed")).change(template=NEW)
    assert verdict(world) == "Delete/Completed"


def test_5_pod_that_has_ended_stays_if_its_template_does_not_exist() -> None:
    """A pod has ended, and its template does not exist: the pod stays, because no new one could be
    created.
    """
    world = settled().modify(0, lambda pod: completed(pod, "Failed"))
    world.change(defaultTemplateName="typo")
    assert verdict(world) == "Keep/TemplateNotFound"


def test_6_pod_stays_if_its_template_does_not_exist() -> None:
    assert verdict(settled().change(defaultTemplateName="typo")) == "Keep/TemplateNotFound"


def test_7_unready_pod_that_matches_its_template_stays() -> None:
    world = settled().modify(0, lambda pod: running(pod, ready=False))
    assert verdict(world) == "Keep/UpToDate"


def test_8_changed_image_or_label_is_updated_in_place() -> None:
    assert (
        verdict(settled().change(template=template("nginx:2"))) == "UpdateInPlace/TemplateChanged"
    )
    changed = template(labels={"app": "web", "tier": "front"})
    assert verdict(settled().change(template=changed)) == "UpdateInPlace/TemplateChanged"


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(template(container={"command": ["run"]}), id="command"),
        pytest.param(
            template(container={"env": [{"name": "A", "value": "1"}]}), id="environment variable"
        ),
        pytest.param(template(sidecars=[{"name": "side", "image": "s:1"}]), id="another container"),
        pytest.param(template(nodeSelector={"disk": "ssd"}), id="node selector"),
        pytest.param(
            template(container={"resources": {"requests": {"cpu": "2"}}}), id="resource request"
        ),
        pytest.param(template(terminationGracePeriodSeconds=5), id="grace period"),
        pytest.param(template(tolerations=[{"operator": "Exists"}]), id="toleration"),
        pytest.param(template("nginx:2", priorityClassName="high"), id="image and priority class"),
    ],
)
def test_8_other_changes_replace_the_pod(changed: Document) -> None:
    world = settled()
    before = world.uids()
    assert verdict(world.change(template=changed)) == "Recreate/TemplateChanged"
    world.settle()
    assert world.uids() != before
    assert verdict(world) == "Keep/UpToDate"


def test_replaced_pod_is_created_after_the_old_one_is_gone() -> None:
    world = settled().change(template=NEW)
    assert desired(world.sync(), "Pod") == {}
    assert verdict(world) == "Keep/Terminating"
    world.kubelet()
    assert verdict(world) == "Create/NoPod"


# --- rules 2 and 6 in detail: a typo deletes no pod -----------------------------------------------

INVALID: dict[str, Any] = {
    "unknown default template": {"defaultTemplateName": "typo"},
    "unknown default template, old field name": {"DefaultTemplateName": "typo"},
    "unknown template of an instance": {"templates": {"0": "typo", "1": "typo"}},
    "no template": {"template": None},
    "empty template": {"template": {}},
    "template without a spec": {"template": {"metadata": {}}},
    "template without containers": {"template": {"spec": {"containers": []}}},
    "container without a name": {"template": {"spec": {"containers": [{"image": "a"}]}}},
    "container of a wrong type": {"template": {"spec": {"containers": ["a"]}}},
    "containers of a wrong type": {"template": {"spec": {"containers": "a"}}},
    "labels of a wrong type": {"template": {**template(), "metadata": {"labels": {"a": 1}}}},
    "spec of a wrong type": {"template": {"spec": ["containers"]}},
}


@pytest.mark.parametrize("spec", INVALID.values(), ids=INVALID.keys())
def test_invalid_template_deletes_no_pod_and_sets_a_condition(spec: Document) -> None:
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


def test_unknown_template_of_one_instance_does_not_block_the_others() -> None:
    world = settled(replicas=3).change(
        template=template("nginx:2"), templates={"0": "typo"}, updateStrategy={"maxUnavailable": 3}
    )
    assert world.decisions() == {
        0: "Keep/TemplateNotFound",
        1: "UpdateInPlace/TemplateChanged",
        2: "UpdateInPlace/TemplateChanged",
    }


def test_correcting_an_unknown_template_name_writes_no_pod() -> None:
    world = settled(replicas=2)
    before = world.uids()
    world.change(defaultTemplateName="typo").settle()
    world.change(defaultTemplateName=None).settle()
    assert world.uids() == before
    assert condition(world.parent["status"], "TemplateNotFound") is None


# --- children that are no instances ---------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["web-x", "web-007", "web-", "web-0-1", "other", "web-99999999999"]
)
def test_pod_without_an_instance_number_is_kept_and_named(name: str) -> None:
    world = settled()
    stranger = world.pod(0)
    stranger = {**stranger, "metadata": {**stranger["metadata"], "name": name, "uid": "u-9"}}
    world.pods[name] = stranger
    answer = world.sync()
    assert name in desired(answer, "Pod")
    found = condition(answer, "ForeignPods")
    assert found is not None
    assert name in found["message"]


def test_keys_that_are_no_instance_numbers_set_a_condition() -> None:
    world = World(tapp(templates={"zero": "default"}, statuses={"01": "Killed"}))
    found = condition(world.sync(), "UnknownInstances")
    assert found is not None
    assert sorted(world.pods) == ["web-0"]


def test_every_decision_of_a_plan_has_a_reason_and_a_message() -> None:
    world = settled(replicas=3).modify(0, terminating).change(template=NEW, replicas=4)
    plan = world.hook.answer("/plan", world.request())
    assert all(item["reason"] and item["message"] for item in plan["instances"])
    assert [item["id"] for item in plan["instances"]] == [0, 1, 2, 3]
