"""Instances that are available, and when none may be taken."""

from tests.builders import Document, template
from tests.unit.world import World, settled

NEW = template(container={"env": [{"name": "A", "value": "1"}]})


def verdicts(world: World) -> list[str]:
    return [world.decisions()[id] for id in sorted(world.decisions())]


def observed_generation(world: World, generation: int, reason: str) -> World:
    """The status says which spec was acted on last, and what `Progressing` was about then."""
    status = world.parent["status"]
    conditions = [
        {**item, "reason": reason} if item["type"] == "Progressing" else item
        for item in status["conditions"]
    ]
    status = {**status, "observedGeneration": generation, "conditions": conditions}
    world.parent = {**world.parent, "status": status}
    return world


def test_a_pod_whose_readiness_is_unknown_is_not_available() -> None:
    """No Ready condition: it neither counts for others nor costs budget itself."""
    world = settled(replicas=3, template=template())
    world.modify(1, lambda pod: {**pod, "status": {**pod["status"], "conditions": []}})
    assert world.sync()["status"]["availableReplicas"] == 2
    world.change(template=NEW)
    observed_generation(world, world.parent["metadata"]["generation"], "Updating")
    assert verdicts(world) == [
        "Keep/WaitingForBudget",
        "Recreate/TemplateChanged",
        "Keep/WaitingForBudget",
    ]


def test_a_new_spec_at_rest_is_acted_on_at_once() -> None:
    """The previous spec was fully rolled out, so nothing of it can be under way."""
    world = settled(replicas=3).change(template=NEW)
    assert verdicts(world)[0] == "Recreate/TemplateChanged"


def test_a_new_spec_in_the_middle_of_a_roll_waits_for_one_sync() -> None:
    """Metacontroller's cache may not show yet what the previous spec has taken down (P2)."""
    world = settled(replicas=3).change(template=NEW)
    generation = world.parent["metadata"]["generation"]
    observed_generation(world, generation - 1, "Updating")
    assert verdicts(world) == ["Keep/SpecJustChanged"] * 3
    assert world.hook.sync(world.request())["resyncAfterSeconds"] == 1
    observed_generation(world, generation, "Updating")
    assert verdicts(world)[0] == "Recreate/TemplateChanged"


def test_two_new_specs_at_once_wait_for_one_sync() -> None:
    """The first of them may have been acted on, and its status not be seen."""
    world = settled(replicas=3).change(template=template("nginx:2")).change(template=NEW)
    generation = world.parent["metadata"]["generation"]
    observed_generation(world, generation - 2, "Complete")
    assert verdicts(world) == ["Keep/SpecJustChanged"] * 3


def test_a_broken_instance_does_not_wait_for_the_cache() -> None:
    """An instance that is down already can be repaired at once."""
    world = settled(replicas=3).change(template=NEW)
    observed_generation(world, world.parent["metadata"]["generation"] - 1, "Updating")
    world.modify(2, lambda pod: {**pod, "status": {**pod["status"], "conditions": []}})
    assert verdicts(world) == [*["Keep/SpecJustChanged"] * 2, "Recreate/TemplateChanged"]
    assert world.hook.sync(world.request())["resyncAfterSeconds"] == 1  # the others wait for one


def test_a_pod_chosen_before_waits_for_the_budget_while_others_are_broken() -> None:
    """Its deletion failed and it serves again: `replacing` is no licence to take it."""
    world = settled(replicas=3).change(template=NEW)
    uid = world.pod(2)["metadata"]["uid"]
    observed_generation(world, world.parent["metadata"]["generation"], "Updating")
    world.parent["status"]["replacing"] = {"2": uid}
    world.modify(0, lambda pod: {**pod, "status": {**pod["status"], "conditions": []}})
    assert verdicts(world) == [
        "Recreate/TemplateChanged",
        "Keep/WaitingForBudget",
        "Keep/WaitingForBudget",
    ]
    answer = world.hook.sync(world.request())
    assert answer["status"]["replacing"] == {"0": world.pod(0)["metadata"]["uid"], "2": uid}


def silent(pod: Document) -> Document:
    """The pod as the node lifecycle controller leaves it when its node is not heard of."""
    conditions = [
        {**item, "status": "False"} if item["type"] == "Ready" else item
        for item in pod["status"]["conditions"]
    ]
    return {**pod, "status": {**pod["status"], "conditions": conditions}}


def test_instances_of_a_silent_node_are_no_licence_to_update_them_all() -> None:
    world = settled(replicas=4)
    for id in range(4):
        world.modify(id, silent)
    world.change(template=template("nginx:2"))
    assert verdicts(world) == ["Keep/NodeSilent"] * 4


def test_a_silent_instance_is_left_alone_and_counts_as_unavailable() -> None:
    """Its kubelet cannot act now; when it is back, another one may have been taken."""
    world = settled(replicas=3, updateStrategy={"maxUnavailable": 2}).modify(1, silent)
    world.change(template=template("nginx:2"))
    assert verdicts(world) == [
        "UpdateInPlace/TemplateChanged",
        "Keep/NodeSilent",
        "Keep/WaitingForBudget",
    ]


def test_a_pod_behind_a_closed_gate_is_not_silent() -> None:
    """Its kubelet says that it is not ready, and why."""
    body = template(readinessGates=[{"conditionType": "example.com/open"}])
    world = settled(replicas=2, template=body)
    for id in range(2):
        world.modify(id, silent)
    world.change(template=template("nginx:2", readinessGates=body["spec"]["readinessGates"]))
    assert verdicts(world) == ["UpdateInPlace/TemplateChanged"] * 2
