"""Tests the safety properties P1 to P8 (docs/guarantees.md) with random TApps."""

import json
from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from simulator.api.apply import merge
from tapp.kube.project import project
from tests.builders import Document
from tests.holds import HOLD
from tests.invariants import p1_permuted_children_give_the_same_bytes
from tests.unit.strategies import worlds
from tests.unit.world import Hook, World

HOOK = Hook()


@given(worlds())
def test_p2_p4_p5_p6_p8_hold_for_random_tapps(world: World) -> None:
    world.sync()  # checks the properties
    world.sync()
    world.kubelet()
    world.sync()


@given(worlds(), st.integers(0, 9))
def test_p1_response_depends_neither_on_the_order_of_children_nor_on_earlier_calls(
    world: World, seed: int
) -> None:
    request = world.request()
    p1_permuted_children_give_the_same_bytes(
        request,
        lambda document: bytes(HOOK.post("/sync", json.dumps(document).encode()).data),
        seed,
    )
    assert Hook().post("/sync", request).data == HOOK.post("/sync", request).data


@given(worlds())
def test_p3_random_tapps_settle_with_a_valid_spec_and_healthy_kubelets(world: World) -> None:
    strategy = {"paused": False, "maxUnavailable": 1, "forceUpdate": {"maxUnavailable": 1}}
    world.change(updateStrategy=strategy, templates=None, defaultTemplateName=None)
    world.settle()
    for name, pod in world.pods.items():
        ended = pod["status"]["phase"] in ("Succeeded", "Failed")
        assert ended or pod["status"]["phase"] == "Running", name
    assert world.parent["status"]["updatedReplicas"] == world.parent["status"]["replicas"]


@given(worlds())
def test_p6_finalize_ends_and_keeps_claims_that_are_to_be_retained(world: World) -> None:
    for name, pod in world.pods.items():  # a deletion waits for pods on hold without a limit
        notes = dict(pod["metadata"].get("annotations") or {})
        notes.pop(HOLD, None)
        world.pods[name] = {**pod, "metadata": {**pod["metadata"], "annotations": notes}}
    answer: Document = {"finalized": False}
    for _ in range(5):
        if not answer["finalized"]:
            answer = world.hook.finalize(world.request(finalizing=True))
            world.apply(answer)
            world.kubelet()
    assert answer["finalized"]
    assert world.pods == {}
    policy = world.parent["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"]
    assert policy == "Retain" or not world.claims


@given(worlds())
def test_sync_does_not_change_the_request(world: World) -> None:
    request = world.request()
    before = deepcopy(request)
    body = json.dumps(request).encode()
    HOOK.post("/sync", body)
    assert request == before


# --- projection: the response that changes nothing ------------------------------------------------

KEYS = st.sampled_from(["name", "port", "path", "ip", "a", "b", "items", "containerPort"])
SCALARS = st.sampled_from(["", "x", "y", 0, 1, True, False, None])
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, JSON, max_size=4)


def has_repeated_keys(value: Any) -> bool:
    """Returns True if two items of a list, at any depth, share a value that could be a merge
    key.
    """
    if isinstance(value, dict):
        return any(map(has_repeated_keys, value.values()))
    if not isinstance(value, list):
        return False
    for key in ("containerPort", "port", "name", "ip", "path"):
        found = [str(item[key]) for item in value if isinstance(item, dict) and key in item]
        if len(set(found)) < len(found):
            return True
    return any(map(has_repeated_keys, value))


@given(OBJECTS, OBJECTS)
def test_merging_a_projection_results_in_the_observed_object(
    observed: Document, applied: Document
) -> None:
    if has_repeated_keys(observed) or has_repeated_keys(applied):
        return
    answer = project(observed, applied)
    assert merge(observed, applied, answer) == observed
    assert project(observed, answer) == answer


@given(OBJECTS, OBJECTS)
def test_projection_changes_neither_of_its_arguments(observed: Document, applied: Document) -> None:
    observed_before, applied_before = deepcopy(observed), deepcopy(applied)
    project(observed, applied)
    assert observed == observed_before
    assert applied == applied_before
