"""Tests claims that grow with their claim template, and the condition for claims that cannot."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.api.apply import LAST_APPLIED
from tapp.kube.canonical import quantity
from tapp.kube.resources import compare
from tests import builders
from tests.builders import Document, bound, claim_template, storage_class, tapp, terminating
from tests.hook_calls import bare, desired, storage
from tests.invariants import writes
from tests.unit.world import Hook, World, condition

STANDARD = [storage_class()]


def template_of_size(storage: Any = "1Gi", name: str = "data", **resources: Any) -> Document:
    """Returns a claim template with this size and the class `standard`; `resources` are further
    resources.
    """
    document = claim_template(name, storage)
    document["spec"]["storageClassName"] = "standard"
    document["spec"]["resources"] |= resources
    return document


def settled_tapp(
    replicas: int = 2, classes: list[Document] | None = None, parent: Document | None = None
) -> World:
    """Returns a TApp with bound claims of 1Gi that may grow.

    `classes` are the cluster's StorageClasses; None for one that allows growing. `parent` is the
    TApp; None for one with `replicas` instances.
    """
    spec = {"replicas": replicas, "volumeClaimTemplates": [template_of_size()]}
    world = World(parent or tapp(**spec), classes=STANDARD if classes is None else classes)
    world.settle()
    world.claims = {name: bound(claim) for name, claim in world.claims.items()}
    return world.settle()


def with_larger_template(world: World, storage: Any = "2Gi", **resources: Any) -> World:
    """Changes the size in the claim template, and returns the world."""
    return world.change(volumeClaimTemplates=[template_of_size(storage, **resources)])


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
        ([storage_class(grows=False)], "StorageClass 'standard' does not allow it"),
        ([storage_class(grows=None)], "StorageClass 'standard' does not allow it"),
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
        "NotExpandable: claims data-web-N (N: 0-2) request 1Gi instead of 2Gi as in their "
        "template: "
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
    assert "shows no StorageClasses" in found["message"]


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
    assert found.startswith("Infeasible: claims data-web-N (N: 1) request 2Gi")
    assert "see its messages with `kubectl describe pvc data-web-1 -n shop`" in found
    assert world.writes == []


def test_condition_names_all_causes_with_their_claims() -> None:
    world = edit_claim(settled_tapp(replicas=4), "data-web-1", storageClassName="slow")
    edit_claim(world, "data-web-3", storageClassName="")
    world.classes = [storage_class(), storage_class("slow", grows=False)]
    found = not_grown_message(with_larger_template(world))
    assert "(N: 1)" in found
    assert "(N: 3)" in found
    assert sizes(world) == {
        "data-web-0": "2Gi",
        "data-web-1": "1Gi",
        "data-web-2": "2Gi",
        "data-web-3": "1Gi",
    }


# --- the registration -----------------------------------------------------------------------------


def test_older_registration_gets_unchanged_responses() -> None:
    world = with_larger_template(settled_tapp())
    older = world.request(classes=None)
    answer = world.hook.answer("/sync", older)
    assert condition(answer, "ClaimsNotGrown") is None
    child = desired(answer, "PersistentVolumeClaim")["data-web-0"]
    assert child.keys() == {"apiVersion", "kind", "metadata"}
    assert child["metadata"].keys() == {"name", "namespace", "labels"}
    plan = world.hook.answer("/plan", older)
    assert plan["claims"].keys() == {"keep", "create", "delete"}


def test_storage_classes_are_requested_if_claims_may_grow() -> None:
    request = builders.request(tapp(volumeClaimTemplates=[template_of_size()]), classes=[])
    assert Hook().answer("/customize", request) == {
        "relatedResources": [
            {"apiVersion": "v1", "resource": "namespaces", "names": [builders.NAMESPACE]},
            {"apiVersion": "storage.k8s.io/v1", "resource": "storageclasses", "labelSelector": {}},
        ]
    }
    without = builders.request(tapp(), classes=[])
    assert Hook().answer("/customize", without) == {"relatedResources": []}


def test_new_registration_causes_no_write_of_existing_claims() -> None:
    world = settled_tapp()
    world.classes = None
    world.settle()
    world.classes = STANDARD
    world.sync()
    assert world.writes == []


def test_claims_of_the_old_controller_are_written_once_for_an_annotation() -> None:
    world = settled_tapp()
    before = {name: adopted(claim) for name, claim in world.claims.items()}
    world.claims = dict(before)
    world.sync()
    assert world.writes == [f"update PersistentVolumeClaim/data-web-{id}" for id in (0, 1)]
    for name, claim in world.claims.items():
        version = before[name]["metadata"]["resourceVersion"]
        assert bare(builders.with_meta(claim, resourceVersion=version)) == before[name]
    world.sync()
    assert world.writes == []


def adopted(claim: Document) -> Document:
    """Returns a claim as if somebody else had created it, without owners and annotations."""
    return builders.with_meta(claim, annotations=None, ownerReferences=None)


def test_claim_of_the_old_controller_grows_with_one_write() -> None:
    world = settled_tapp(replicas=1)
    world.claims = {name: adopted(claim) for name, claim in world.claims.items()}
    before = world.claims["data-web-0"]
    with_larger_template(world).sync()
    after = world.claims["data-web-0"]
    assert after["spec"] == {**before["spec"], "resources": {"requests": {"storage": "2Gi"}}}
    for _ in range(2):
        world.sync()
        assert world.writes == []


def test_claim_with_an_invalid_last_applied_annotation_is_kept() -> None:
    world = with_larger_template(settled_tapp(replicas=1)).settle()
    claim = world.claims["data-web-0"]
    for text in ("", "[]", "{", '{"metadata":[]}', '{"metadata":{"annotations":1}}', "null"):
        broken = builders.with_meta(claim, annotations={LAST_APPLIED: text, "note": "x"})
        world.claims["data-web-0"] = broken
        child = desired(world.hook.answer("/sync", world.request()), "PersistentVolumeClaim")
        assert child["data-web-0"]["metadata"]["name"] == "data-web-0"
        assert LAST_APPLIED not in str(child["data-web-0"])


def test_growing_keeps_labels_annotations_and_finalizers_of_others() -> None:
    world = settled_tapp(replicas=1)
    claim = world.claims["data-web-0"]
    meta = claim["metadata"]
    mine = builders.with_meta(
        claim,
        labels={**meta["labels"], "backup": "yes"},
        annotations={**meta["annotations"], "note": "mine"},
        finalizers=[*meta["finalizers"], "example.com/snapshot"],
    )
    world.claims["data-web-0"] = mine
    world.sync()
    assert world.writes == []
    with_larger_template(world).sync()
    after = world.claims["data-web-0"]["metadata"]
    for part in ("labels", "finalizers", "ownerReferences"):
        assert after[part] == mine["metadata"][part]
    assert after["annotations"]["note"] == "mine"


def tapp_named_like_its_namespace() -> World:
    """Returns a TApp whose name is also the name of its Namespace, with a bound claim."""
    parent = tapp(replicas=1, volumeClaimTemplates=[template_of_size()])
    name = builders.NAMESPACE
    world = World(builders.with_meta(parent, name=name), classes=STANDARD)
    world.sync()
    world.claims = {key: bound(claim) for key, claim in world.claims.items()}
    world.kubelet()
    return world


def test_claim_keeps_both_owners_if_the_tapp_has_the_name_of_its_namespace() -> None:
    """Grows a claim whose two owners have the same name: both stay.

    Metacontroller distinguishes owners by name, so one could replace the other.
    """
    world = tapp_named_like_its_namespace()
    claim = f"data-{builders.NAMESPACE}-0"
    owners = world.claims[claim]["metadata"]["ownerReferences"]
    assert len({owner["name"] for owner in owners}) == 1
    assert len(owners) == 2
    before = world.claims[claim]
    world.sync()
    noted = world.claims[claim]
    version = before["metadata"]["resourceVersion"]
    assert bare(builders.with_meta(noted, resourceVersion=version)) == bare(before)
    world.sync()
    assert world.writes == []
    with_larger_template(world).sync()
    after = world.claims[claim]
    assert storage(after) == "2Gi"
    assert after["metadata"]["ownerReferences"] == owners
    world.sync()
    assert world.writes == []


def with_applied_owners(world: World, owners: Any) -> World:
    """Sets the owners in Metacontroller's last-applied annotation of the only claim, and returns
    the world.
    """
    (name,) = world.claims
    annotations = world.claims[name]["metadata"]["annotations"]
    applied = json.loads(annotations[LAST_APPLIED])
    applied["metadata"]["ownerReferences"] = owners
    annotations = {**annotations, LAST_APPLIED: json.dumps(applied)}
    world.claims[name] = builders.with_meta(world.claims[name], annotations=annotations)
    return world


@pytest.mark.parametrize(
    "owners",
    [
        None,
        "none",
        {"name": "shop"},
        [],
        [{"name": "shop", "uid": {}}],
        [{"name": "another", "uid": ["x"]}],
    ],
    ids=str,
)
def test_claim_keeps_both_owners_with_any_last_applied_annotation(owners: Any) -> None:
    world = tapp_named_like_its_namespace()
    (claim,) = world.claims.values()
    with_applied_owners(world, owners).sync()
    (after,) = world.claims.values()
    assert after["metadata"]["ownerReferences"] == claim["metadata"]["ownerReferences"]


def test_claim_write_is_made_invalid_if_it_would_remove_an_owner() -> None:
    world = tapp_named_like_its_namespace()
    (claim,) = world.claims.values()
    owners = claim["metadata"]["ownerReferences"]
    answer = world.hook.answer("/sync", with_applied_owners(world, owners).request())
    (child,) = desired(answer, "PersistentVolumeClaim").values()
    assert child["metadata"]["ownerReferences"] == [{"uid": owner["uid"]} for owner in owners]


def test_finalize_does_not_grow_claims() -> None:
    world = with_larger_template(settled_tapp())
    answer = world.hook.finalize(world.request(finalizing=True))
    assert set(desired(answer, "PersistentVolumeClaim")) == {"data-web-0", "data-web-1"}
    request = world.request(finalizing=True)
    assert [write for write in writes(request, answer) if "update" in write] == []


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
