"""Tests the annotations for autoscalers: pods on hold carry them, and no other pod gets them.

An autoscaler removes a node by evicting its pods. A pod with one of these annotations keeps its
node. An annotation that the author of a TApp or anybody else has set is never changed.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tapp.words.vocabulary import LAST_APPLIED
from tests.builders import Document, template
from tests.unit.world import World, settled

HOLD = "apps.tkestack.io/hold"
RECORD = "apps.tkestack.io/held-annotations"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
ON_HOLD = {SAFE_TO_EVICT: "false", DO_NOT_DISRUPT: "true"}


def noted(**changes: str | None) -> Callable[[Document], Document]:
    """Returns a function that sets annotations of a pod; None removes an annotation.

    The keys are `hold`, `evict` (safe-to-evict) and `disrupt` (do-not-disrupt).
    """
    keys = {"hold": HOLD, "evict": SAFE_TO_EVICT, "disrupt": DO_NOT_DISRUPT}

    def change(pod: Document) -> Document:
        meta = pod["metadata"]
        notes = {**meta["annotations"], **{keys[name]: text for name, text in changes.items()}}
        kept = {key: text for key, text in notes.items() if text is not None}
        return {**pod, "metadata": {**meta, "annotations": kept}}

    return change


def for_autoscalers(world: World, id: int = 0) -> dict[str, str]:
    """Returns the annotations for autoscalers that an instance's pod has, without empty ones."""
    notes: dict[str, str] = world.pod(id)["metadata"]["annotations"]
    return {key: notes[key] for key in ON_HOLD if notes.get(key)}


def on_hold(world: World, id: int = 0) -> World:
    return world.modify(id, noted(hold="match 42")).settle()


def released(world: World, id: int = 0) -> World:
    return world.modify(id, noted(hold=None)).settle()


def test_pod_on_hold_carries_the_annotations_for_autoscalers() -> None:
    world = on_hold(settled(replicas=3))
    assert for_autoscalers(world, 0) == ON_HOLD


@pytest.mark.parametrize("replicas", [1, 2, 3, 12])
def test_only_the_pod_on_hold_gets_annotations_for_autoscalers(replicas: int) -> None:
    world = on_hold(settled(replicas=replicas), replicas - 1)
    for id in range(replicas - 1):
        assert for_autoscalers(world, id) == {}
    assert for_autoscalers(world, replicas - 1) == ON_HOLD


def test_released_pod_loses_the_annotations_for_autoscalers() -> None:
    world = released(on_hold(settled()))
    assert for_autoscalers(world) == {}
    assert RECORD not in world.pod(0)["metadata"]["annotations"]


def test_hold_restarts_no_container_for_the_annotations() -> None:
    world = settled(replicas=3)
    before = world.uids()
    assert released(on_hold(world)).uids() == before
    assert world.container(0)["image"] == settled(replicas=3).container(0)["image"]


AUTHORED: dict[str, dict[str, str]] = {
    "another value of safe-to-evict": {SAFE_TO_EVICT: "true"},
    "the service's own value of safe-to-evict": {SAFE_TO_EVICT: "false"},
    "another value of do-not-disrupt": {DO_NOT_DISRUPT: "false"},
    "both": {SAFE_TO_EVICT: "false", DO_NOT_DISRUPT: "true"},
}


@pytest.mark.parametrize("annotations", AUTHORED.values(), ids=AUTHORED)
def test_annotations_of_the_template_stay_during_and_after_a_hold(
    annotations: dict[str, str],
) -> None:
    world = on_hold(settled(template=template(annotations=annotations)))
    assert for_autoscalers(world) == ON_HOLD | annotations
    assert for_autoscalers(released(world)) == annotations


def test_annotation_that_a_user_set_on_the_pod_stays_after_the_hold() -> None:
    world = settled().modify(0, noted(evict="false"))
    assert for_autoscalers(released(on_hold(world))) == {SAFE_TO_EVICT: "false"}


def test_annotation_that_a_user_changes_during_the_hold_belongs_to_the_user() -> None:
    world = on_hold(settled()).modify(0, noted(evict="true")).settle()
    assert for_autoscalers(world) == {SAFE_TO_EVICT: "true", DO_NOT_DISRUPT: "true"}
    assert for_autoscalers(released(world)) == {SAFE_TO_EVICT: "true"}


def test_annotation_that_a_user_removes_during_the_hold_is_written_again() -> None:
    world = on_hold(settled()).modify(0, noted(disrupt=None)).settle()
    assert for_autoscalers(world) == ON_HOLD


def test_update_in_place_after_the_hold_removes_the_annotations() -> None:
    world = on_hold(settled()).change(template=template("nginx:2")).settle()
    assert for_autoscalers(world) == ON_HOLD
    assert for_autoscalers(released(world)) == {}
    assert world.container(0)["image"] == "nginx:2"


def test_update_in_place_during_a_hold_for_deletions_keeps_the_annotations() -> None:
    def held_for_deletion(pod: Document) -> Document:
        pod = noted(hold="match 42")(pod)
        pod["metadata"]["annotations"]["apps.tkestack.io/hold-for"] = "delete"
        return pod

    world = settled().modify(0, held_for_deletion).settle()
    world.change(template=template("nginx:2")).settle()
    assert world.container(0)["image"] == "nginx:2"
    assert for_autoscalers(world) == ON_HOLD


def test_update_that_brings_an_annotation_of_the_author_keeps_it_after_the_hold() -> None:
    world = on_hold(settled())
    world.change(template=template("nginx:2", annotations={SAFE_TO_EVICT: "false"})).settle()
    assert for_autoscalers(released(world)) == {SAFE_TO_EVICT: "false"}


def test_annotations_of_a_hold_in_a_template_are_no_record_of_the_service() -> None:
    """An author copies the annotations of a pod on hold into a template."""
    pasted: dict[str, Any] = {**ON_HOLD, RECORD: ",".join(ON_HOLD)}
    world = settled(template=template(annotations=pasted))
    assert RECORD not in world.pod(0)["metadata"]["annotations"]
    assert for_autoscalers(world) == ON_HOLD


def test_list_that_somebody_wrote_hands_no_other_annotation_to_the_service() -> None:
    """Metacontroller becomes the owner of each annotation in a response, and may remove it later.

    Without Metacontroller's copy, the response has only annotations that the service has written.
    """

    def listed(pod: Document) -> Document:
        notes = {**pod["metadata"]["annotations"], RECORD: "team", "team": "blue"}
        del notes[LAST_APPLIED]
        return {**pod, "metadata": {**pod["metadata"], "annotations": notes}}

    world = settled(replicas=1).modify(0, listed)
    (pod,) = [each for each in world.sync()["children"] if each["kind"] == "Pod"]
    assert "team" not in pod["metadata"]["annotations"]


def test_killed_instance_on_hold_keeps_the_annotations_until_its_pod_is_deleted() -> None:
    world = on_hold(settled(replicas=3)).change(statuses={"0": "Killed"}).settle()
    assert for_autoscalers(world) == ON_HOLD
    world.modify(0, noted(hold=None)).settle()
    assert "web-0" not in world.pods
