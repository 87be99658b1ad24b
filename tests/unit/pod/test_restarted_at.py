"""Tests the annotation `kubectl.kubernetes.io/restartedAt` of a template, which replaces all
pods.
"""

import pytest

from tests.builders import Document, template
from tests.unit.pod.updates import settle_in_place
from tests.unit.world import settled

RESTARTED = "kubectl.kubernetes.io/restartedAt"


def restarted(at: str, image: str = "nginx:1") -> Document:
    body = template(image)
    body["metadata"]["annotations"] = {RESTARTED: at} if at else {}
    return body


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "2026-01-02T00:00:00Z", "Recreate/RestartAsked"),
        ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "Recreate/RestartAsked"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "Keep/UpToDate"),
        ("2026-01-01T00:00:00Z", "", "UpdateInPlace/TemplateChanged"),
    ],
    ids=["added", "changed", "unchanged", "removed"],
)
def test_changed_restarted_at_annotation_replaces_pods_within_the_budget(
    before: str, after: str, expected: str
) -> None:
    """Changes the annotation that `kubectl rollout restart` sets: pods are replaced within the
    budget.

    The removal of the annotation replaces none.
    """
    world = settled(replicas=3, template=restarted(before))
    decided = world.change(template=restarted(after)).decisions()
    assert decided[0] == expected
    if expected.startswith("Recreate"):
        assert decided[1] == "Keep/WaitingForBudget"


def test_restart_together_with_a_new_image_replaces_each_pod_once() -> None:
    world = settled(replicas=2, template=restarted(""))
    before = world.uids()
    world.change(template=restarted("2026-01-02T00:00:00Z", "nginx:2")).settle()
    assert not {*before.values()} & {*world.uids().values()}
    assert world.decisions() == {0: "Keep/UpToDate", 1: "Keep/UpToDate"}


def test_other_annotations_restart_nothing() -> None:
    world = settled(replicas=1)
    body = template()
    body["metadata"]["annotations"] = {"checksum/config": "abc"}
    assert world.change(template=body).decisions()[0] == "UpdateInPlace/TemplateChanged"
    settle_in_place(world)
