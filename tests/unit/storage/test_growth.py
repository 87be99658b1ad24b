"""Tests claims that grow with their claim template, and the condition for claims that cannot."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapp.kube.canonical import quantity
from tapp.kube.resources import compare
from tests import builders
from tests.builders import Document, bound, storage_class, tapp, terminating
from tests.hook_calls import bare, desired, storage
from tests.unit.storage.growth import (
    STANDARD,
    adopted,
    settled_tapp,
    template_of_size,
    with_larger_template,
)
from tests.unit.world import Hook, World, condition


def edit_claim(world: World, name: str, **spec: Any) -> World:
    """Changes fields of a claim's spec as a user would, and returns the world."""
    claim = world.claims[name]
    world.claims[name] = {**claim, "spec": {**claim["spec"], **spec}}
    return world


def sizes(world: World) -> dict[str, str]:
    """Returns claim name -> requested size."""
    return {name: storage(claim) for name, claim in world.claims.items()}


def not_grown_message(world: World) -> str:
    """Runs a sync; returns reason and message of `ClaimsNotGrown`, or "" without the condition."""
    found = condition(world.sync(), "ClaimsNotGrown")
    return "" if found is None else f"{found['reason']}: {found['message']}"


# --- claims that grow -----------------------------------------------------------------------------


def test_larger_claim_template_grows_all_claims_in_one_sync_and_touches_no_pod() -> None:
    world = settled_tapp(replicas=3)
    pods = world.uids()
    with_larger_template(world).sync()
    assert world.writes == [f"update PersistentVolumeClaim/data-web-{id}" for id in range(3)]
    assert sizes(world) == {f"data-web-{id}": "2Gi" for id in range(3)}
    world.settle()
    assert world.uids() == pods


def test_growing_a_claim_changes_only_its_size() -> None:
    world = settled_tapp(replicas=1)
    before = world.claims["data-web-0"]
    with_larger_template(world).sync()
    after = deepcopy(world.claims["data-web-0"])
    after["spec"]["resources"]["requests"]["storage"] = "1Gi"
    after["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
    assert bare(after) == bare(before)


def test_plan_lists_growing_claims_with_their_new_size() -> None:
    world = with_larger_template(settled_tapp())
    plan = world.hook.answer("/plan", world.request())
    assert plan["claims"]["grow"] == {"data-web-0": "2Gi", "data-web-1": "2Gi"}
    assert "grow" not in settled_tapp().hook.answer("/plan", settled_tapp().request())["claims"]


@pytest.mark.parametrize(
    "size", ["1Gi", "1024Mi", "1073741824", 1073741824, "1.0Gi", "1e3", "512Mi"]
)
def test_size_that_is_not_larger_causes_no_write(size: Any) -> None:
    world = with_larger_template(settled_tapp(), size)
    assert not_grown_message(world) == ""
    assert world.writes == []


@pytest.mark.parametrize(
    ("size", "becomes"),
    [
        ("1025Mi", "1025Mi"),
        ("1.5Gi", "1536Mi"),
        ("2G", "2G"),
        (2000000000, "2G"),
        ("2e9", "2G"),
        ("2000E6", "2G"),
        (2500000000.0, "2500M"),
    ],
)
def test_new_size_is_written_in_canonical_form(size: Any, becomes: str) -> None:
    world = with_larger_template(settled_tapp(replicas=1), size)
    world.sync()
    assert sizes(world) == {"data-web-0": becomes}
    world.sync()
    assert world.writes == []


def test_claim_that_a_user_has_grown_further_keeps_its_size() -> None:
    world = edit_claim(settled_tapp(), "data-web-0", resources={"requests": {"storage": "5Gi"}})
    with_larger_template(world).settle()
    assert sizes(world) == {"data-web-0": "5Gi", "data-web-1": "2Gi"}


def test_claim_of_a_killed_instance_grows() -> None:
    world = settled_tapp().change(statuses={"0": "Killed"}).settle()
    with_larger_template(world).settle()
    assert sizes(world) == {"data-web-0": "2Gi", "data-web-1": "2Gi"}


def test_claim_of_a_removed_instance_grows_when_the_instance_comes_back() -> None:
    world = settled_tapp().change(replicas=1).settle()
    with_larger_template(world).settle()
    assert sizes(world) == {"data-web-0": "2Gi", "data-web-1": "1Gi"}
    world.change(replicas=2).settle()
    assert sizes(world) == {"data-web-0": "2Gi", "data-web-1": "2Gi"}


def test_each_claim_grows_with_its_own_claim_template() -> None:
    spec = {"volumeClaimTemplates": [template_of_size(), template_of_size(name="logs")]}
    world = settled_tapp(parent=tapp(replicas=1, **spec))
    world.change(
        volumeClaimTemplates=[template_of_size(), template_of_size("3Gi", name="logs")]
    ).settle()
    assert sizes(world) == {"data-web-0": "1Gi", "logs-web-0": "3Gi"}


@pytest.mark.parametrize("paused", [True, False], ids=["paused", "not paused"])
def test_claims_grow_while_updates_are_paused_and_an_instance_is_broken(paused: bool) -> None:
    world = settled_tapp().change(updateStrategy={"paused": paused})
    world.modify(0, builders.crashing)
    with_larger_template(world).sync()
    assert set(sizes(world).values()) == {"2Gi"}


def test_beta_annotation_of_the_storage_class_is_used() -> None:
    world = settled_tapp(replicas=1)
    claim = world.claims["data-web-0"]
    older = {**claim["metadata"]["annotations"], "volume.beta.kubernetes.io/storage-class": "slow"}
    world.claims["data-web-0"] = builders.with_meta(claim, annotations=older)
    assert "'slow'" in not_grown_message(with_larger_template(world))


# --- claims that wait without a condition ---------------------------------------------------------


@pytest.mark.parametrize("phase", ["Pending", "Lost", None])
def test_claim_that_is_not_bound_grows_when_it_is_bound(phase: str | None) -> None:
    world = settled_tapp(replicas=1)
    claim = world.claims["data-web-0"]
    world.claims["data-web-0"] = {**claim, "status": {"phase": phase}}
    assert not_grown_message(with_larger_template(world)) == ""
    assert world.writes == []
    world.claims["data-web-0"] = claim
    world.sync()
    assert sizes(world) == {"data-web-0": "2Gi"}


def test_terminating_claim_does_not_grow() -> None:
    world = settled_tapp(replicas=1)
    world.claims["data-web-0"] = terminating(world.claims["data-web-0"])
    assert not_grown_message(with_larger_template(world)) == ""
    assert world.writes == []


@pytest.mark.parametrize("name", ["data-web-x", "data-web-01", "data-web-0-9", "other-web-0"])
def test_claims_that_belong_to_no_instance_do_not_grow(name: str) -> None:
    world = settled_tapp(replicas=1)
    world.claims = {name: builders.with_meta(world.claims["data-web-0"], name=name)}
    world.claims["data-web-0"] = settled_tapp(replicas=1).claims["data-web-0"]
    with_larger_template(world).sync()
    assert sizes(world) == {name: "1Gi", "data-web-0": "2Gi"}


@pytest.mark.parametrize(
    "part",
    [
        {"spec": None},
        {"spec": {"resources": []}},
        {"spec": {"resources": {"requests": {"storage": "much"}}}},
        {"spec": {"resources": {"requests": {"storage": {}}}}},
        {"status": "Bound"},
        {"status": {"phase": 1}},
    ],
    ids=[
        "null spec",
        "resources list",
        "invalid size",
        "size object",
        "status string",
        "phase number",
    ],
)
def test_claim_with_invalid_fields_stays_as_it_is(part: Document) -> None:
    world = with_larger_template(settled_tapp(replicas=1))
    world.claims["data-web-0"] = {**world.claims["data-web-0"], **part}
    plan = world.hook.answer("/plan", world.request())
    assert plan["claims"] == {"keep": ["data-web-0"], "create": [], "delete": []}
    assert world.hook.post("/sync", world.request()).status_code == 200


@pytest.mark.parametrize(
    "resources",
    [None, [], {"requests": None}, {"requests": {"storage": "?"}}],
    ids=["null", "list", "null requests", "invalid size"],
)
def test_claim_template_without_a_valid_size_grows_nothing(resources: Any) -> None:
    odd = template_of_size()
    odd["spec"]["resources"] = resources
    world = settled_tapp(replicas=1).change(volumeClaimTemplates=[odd])
    assert not_grown_message(world) == ""
    assert world.writes == []


# --- claims that cannot grow ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classes", "cause"),
    [
        ([storage_class(grows=False)], "StorageClass 'standard' does not let volumes grow"),
        ([storage_class(grows=None)], "StorageClass 'standard' does not let volumes grow"),
        ([storage_class("other")], "there is no StorageClass 'standard'"),
        ([], "there is no StorageClass 'standard'"),
        ([{**storage_class(), "allowVolumeExpansion": "yes"}], "there is no StorageClass"),
    ],
    ids=["false", "not set", "another class", "no class", "invalid class"],
)
def test_claims_do_not_grow_if_their_storage_class_does_not_allow_it(
    classes: list[Document], cause: str
) -> None:
    world = settled_tapp(replicas=3, classes=classes)
    found = not_grown_message(with_larger_template(world))
    assert found.startswith(
        "NotExpandable: claims data-web-N (N: 0-2) request 1Gi instead of 2Gi, which the claim "
        "template requests: "
    )
    assert cause in found
    assert world.writes == []
    degraded = condition(world.sync(), "Degraded")
    assert degraded is not None
    assert degraded["reason"] == "ClaimsNotGrown"
    world.classes = STANDARD
    assert not_grown_message(world) == ""
    assert set(sizes(world).values()) == {"2Gi"}


@pytest.mark.parametrize("name", ["", None], ids=["empty", "absent"])
def test_claim_without_a_storage_class_cannot_grow(name: str | None) -> None:
    world = edit_claim(settled_tapp(replicas=1), "data-web-0", storageClassName=name)
    assert "the claims have no StorageClass" in not_grown_message(with_larger_template(world))
    assert sizes(world) == {"data-web-0": "1Gi"}


def test_condition_says_that_the_request_has_no_storage_classes() -> None:
    world = with_larger_template(settled_tapp(replicas=1))
    request = world.request()
    del request["related"]["StorageClass.storage.k8s.io/v1"]
    found = condition(world.hook.sync(request), "ClaimsNotGrown")
    assert found is not None
    assert "has not seen the StorageClasses yet" in found["message"]


def test_claim_does_not_grow_beyond_its_own_limit() -> None:
    limits = {"requests": {"storage": "1Gi"}, "limits": {"storage": "1536Mi"}}
    world = edit_claim(settled_tapp(replicas=1), "data-web-0", resources=limits)
    assert "limits.storage of the claims is 1536Mi" in not_grown_message(
        with_larger_template(world, limits={"storage": "4Gi"})
    )
    assert world.writes == []
    with_larger_template(world, "1500Mi").sync()
    assert world.claims["data-web-0"]["spec"]["resources"] == {
        "requests": {"storage": "1500Mi"},
        "limits": {"storage": "1536Mi"},
    }


def test_condition_says_that_the_storage_driver_cannot_grow_a_claim() -> None:
    world = with_larger_template(settled_tapp()).settle()
    claim = world.claims["data-web-1"]
    status = {"allocatedResourceStatuses": {"storage": "ControllerResizeInfeasible"}}
    world.claims["data-web-1"] = {**claim, "status": {**claim["status"], **status}}
    found = not_grown_message(world)
    assert found.startswith("Infeasible: claim data-web-1 requests 2Gi")
    assert "see its messages with `kubectl describe pvc data-web-1 -n shop`" in found
    assert world.writes == []


def test_condition_names_all_causes_with_their_claims() -> None:
    world = edit_claim(settled_tapp(replicas=4), "data-web-1", storageClassName="slow")
    edit_claim(world, "data-web-3", storageClassName="")
    world.classes = [storage_class(), storage_class("slow", grows=False)]
    found = not_grown_message(with_larger_template(world))
    assert "claim data-web-1 requests" in found
    assert "claim data-web-3 requests" in found
    assert sizes(world) == {
        "data-web-0": "2Gi",
        "data-web-1": "1Gi",
        "data-web-2": "2Gi",
        "data-web-3": "1Gi",
    }


# --- random sizes ---------------------------------------------------------------------------------

_numbers = st.integers(1, 4096)
_units = st.sampled_from(["", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e3", "E6"])
_sizes = st.builds(lambda number, unit: f"{number}{unit}", _numbers, _units)
_HOOK = Hook()


@given(
    has=st.lists(_sizes, min_size=1, max_size=3),
    wants=st.one_of(_sizes, _numbers),
    grows=st.booleans(),
    known=st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_random_sizes_never_shrink_a_claim_and_each_claim_is_written_once(
    has: list[str], wants: str | int, grows: bool, known: list[bool]
) -> None:
    parent = tapp(replicas=len(has), volumeClaimTemplates=[template_of_size(wants)])
    world = World(parent, hook=_HOOK, classes=[storage_class(grows=grows)])
    for id, size in enumerate(has):
        claim = desired(World(parent, hook=_HOOK).sync(), "PersistentVolumeClaim")[f"data-web-{id}"]
        claim["spec"]["resources"]["requests"]["storage"] = quantity(size)
        claim = bound(builders.stored(claim, parent))
        world.claims[f"data-web-{id}"] = claim if known[id] else adopted(claim)
    world.sync()
    for id, size in enumerate(has):
        after = storage(world.claims[f"data-web-{id}"])
        more = compare(quantity(wants), quantity(size)) > 0
        assert compare(after, quantity(wants if more and grows else size)) == 0
    world.sync()
    assert not [write for write in world.writes if "PersistentVolumeClaim" in write]


def test_claim_grows_by_the_value_of_its_instance_although_another_value_is_missing() -> None:
    own = [
        template_of_size("$(tapp.values.size)"),
        template_of_size("$(tapp.values.more)", name="logs"),
    ]
    values = {"size": "1Gi", "more": "1Gi"}
    parent = tapp(replicas=2, volumeClaimTemplates=own, defaultValues=values)
    world = settled_tapp(parent=parent)
    assert set(sizes(world).values()) == {"1Gi"}
    world.change(values={"1": {"size": "2Gi"}}, defaultValues={"size": "1Gi"}).sync()
    assert sizes(world) == {
        "data-web-0": "1Gi", "data-web-1": "2Gi", "logs-web-0": "1Gi", "logs-web-1": "1Gi",
    }  # fmt: skip
