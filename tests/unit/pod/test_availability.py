"""Tests which instances are available, and when an update may make an available one unavailable."""

from tests.builders import Document, template
from tests.unit.pod.updates import decisions_in_order, with_observed_generation
from tests.unit.world import settled

NEW = template(container={"env": [{"name": "A", "value": "1"}]})


def test_pod_without_a_ready_condition_is_not_available() -> None:
    """Removes the conditions of a pod: its instance is not available, and is updated without using
    the budget.
    """
    world = settled(replicas=3, template=template())
    world.modify(1, lambda pod: {**pod, "status": {**pod["status"], "conditions": []}})
    assert world.sync()["status"]["availableReplicas"] == 2
    world.change(template=NEW)
    with_observed_generation(world, world.parent["metadata"]["generation"], "Updating")
    assert decisions_in_order(world) == [
        "Keep/WaitingForBudget",
        "Recreate/TemplateChanged",
        "Keep/WaitingForBudget",
    ]


def test_new_spec_of_a_settled_tapp_is_rolled_out_at_once() -> None:
    """After a complete rollout, a new spec is rolled out in its first sync: no earlier update can
    be under way.
    """
    world = settled(replicas=3).change(template=NEW)
    assert decisions_in_order(world)[0] == "Recreate/TemplateChanged"


def test_new_spec_during_a_rollout_waits_for_one_sync() -> None:
    """The first sync of a new spec during a rollout updates no available instance.

    Metacontroller's cache may not show the deletions for the previous spec yet (P2).
    """
    world = settled(replicas=3).change(template=NEW)
    generation = world.parent["metadata"]["generation"]
    with_observed_generation(world, generation - 1, "Updating")
    assert decisions_in_order(world) == ["Keep/SpecJustChanged"] * 3
    assert world.hook.sync(world.request())["resyncAfterSeconds"] == 1
    with_observed_generation(world, generation, "Updating")
    assert decisions_in_order(world)[0] == "Recreate/TemplateChanged"


def test_two_new_specs_between_two_syncs_wait_for_one_sync() -> None:
    """If the observed generation is two behind, the first sync updates no available instance.

    The spec in between may already have started a rollout whose status is not visible yet.
    """
    world = settled(replicas=3).change(template=template("nginx:2")).change(template=NEW)
    generation = world.parent["metadata"]["generation"]
    with_observed_generation(world, generation - 2, "Complete")
    assert decisions_in_order(world) == ["Keep/SpecJustChanged"] * 3


def test_unavailable_instance_does_not_wait_for_the_next_sync() -> None:
    """In the first sync of a new spec, an instance that is not available is updated at once."""
    world = settled(replicas=3).change(template=NEW)
    with_observed_generation(world, world.parent["metadata"]["generation"] - 1, "Updating")
    world.modify(2, lambda pod: {**pod, "status": {**pod["status"], "conditions": []}})
    assert decisions_in_order(world) == [*["Keep/SpecJustChanged"] * 2, "Recreate/TemplateChanged"]
    assert world.hook.sync(world.request())["resyncAfterSeconds"] == 1  # for the other instances


def test_pod_whose_deletion_failed_waits_for_the_budget_again() -> None:
    """An instance is available again although `status.replacing` still names it: it waits for the
    budget.
    """
    world = settled(replicas=3).change(template=NEW)
    uid = world.pod(2)["metadata"]["uid"]
    with_observed_generation(world, world.parent["metadata"]["generation"], "Updating")
    world.parent["status"]["replacing"] = {"2": uid}
    world.modify(0, lambda pod: {**pod, "status": {**pod["status"], "conditions": []}})
    assert decisions_in_order(world) == [
        "Recreate/TemplateChanged",
        "Keep/WaitingForBudget",
        "Keep/WaitingForBudget",
    ]
    answer = world.hook.sync(world.request())
    assert answer["status"]["replacing"] == {"0": world.pod(0)["metadata"]["uid"], "2": uid}


def on_unreachable_node(pod: Document) -> Document:
    """Returns the pod as the node lifecycle controller changes it when its node stops reporting:
    not Ready.
    """
    conditions = [
        {**item, "status": "False"} if item["type"] == "Ready" else item
        for item in pod["status"]["conditions"]
    ]
    return {**pod, "status": {**pod["status"], "conditions": conditions}}


def test_instances_on_unreachable_nodes_are_not_updated_together() -> None:
    world = settled(replicas=4)
    for id in range(4):
        world.modify(id, on_unreachable_node)
    world.change(template=template("nginx:2"))
    assert decisions_in_order(world) == ["Keep/NodeSilent"] * 4


def test_instance_on_an_unreachable_node_is_not_updated_and_uses_the_budget() -> None:
    """With a budget of two and one instance on an unreachable node, one other instance is updated.

    The kubelet cannot restart a container while its node is unreachable. When the node is back,
    another update may be running.
    """
    world = settled(replicas=3, updateStrategy={"maxUnavailable": 2}).modify(1, on_unreachable_node)
    world.change(template=template("nginx:2"))
    assert decisions_in_order(world) == [
        "UpdateInPlace/TemplateChanged",
        "Keep/NodeSilent",
        "Keep/WaitingForBudget",
    ]


def test_pod_with_a_closed_gate_does_not_count_as_on_an_unreachable_node() -> None:
    """Pods with a closed readiness gate are updated: their kubelets report why they are not
    Ready.
    """
    body = template(readinessGates=[{"conditionType": "example.com/open"}])
    world = settled(replicas=2, template=body)
    for id in range(2):
        world.modify(id, on_unreachable_node)
    world.change(template=template("nginx:2", readinessGates=body["spec"]["readinessGates"]))
    assert decisions_in_order(world) == ["UpdateInPlace/TemplateChanged"] * 2
