"""Claims that grow with their template: which, when and how much; and what is said of others."""

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
from tests.invariants import writes
from tests.reading import bare, desired, storage
from tests.unit.world import Hook, World, condition

STANDARD = [storage_class()]


def template(storage: Any = "1Gi", name: str = "data", **resources: Any) -> Document:
    """A claim template of the class `standard`."""
    document = claim_template(name, storage)
    document["spec"]["storageClassName"] = "standard"
    document["spec"]["resources"] |= resources
    return document


def at_rest(
    replicas: int = 2, classes: list[Document] | None = None, parent: Document | None = None
) -> World:
    """A TApp at rest whose claims of 1Gi are Bound and may grow."""
    spec = {"replicas": replicas, "volumeClaimTemplates": [template()]}
    world = World(parent or tapp(**spec), classes=STANDARD if classes is None else classes)
    world.settle()
    world.claims = {name: bound(claim) for name, claim in world.claims.items()}
    return world.settle()


def resized(world: World, storage: Any = "2Gi", **resources: Any) -> World:
    """The author asks for more."""
    return world.change(volumeClaimTemplates=[template(storage, **resources)])


def edited(world: World, name: str, **spec: Any) -> World:
    """Somebody changes a claim by hand."""
    claim = world.claims[name]
    world.claims[name] = {**claim, "spec": {**claim["spec"], **spec}}
    return world


def sizes(world: World) -> dict[str, str]:
    """Claim -> what it asks for."""
    return {name: storage(claim) for name, claim in world.claims.items()}


def not_grown(world: World) -> str:
    """The condition's words after the next sync, "" where there is none."""
    found = condition(world.sync(), "ClaimsNotGrown")
    return "" if found is None else f"{found['reason']}: {found['message']}"


# --- what grows -----------------------------------------------------------------------------------


def test_a_larger_template_reaches_every_claim_at_once_and_no_pod() -> None:
    world = at_rest(replicas=3)
    pods = world.uids()
    resized(world).sync()
    assert world.writes == [f"update PersistentVolumeClaim/data-web-{id}" for id in range(3)]
    assert sizes(world) == {f"data-web-{id}": "2Gi" for id in range(3)}
    world.settle()
    assert world.uids() == pods


def test_only_the_size_is_in_what_is_written() -> None:
    world = at_rest(replicas=1)
    before = world.claims["data-web-0"]
    resized(world).sync()
    after = deepcopy(world.claims["data-web-0"])
    after["spec"]["resources"]["requests"]["storage"] = "1Gi"
    after["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"]
    assert bare(after) == bare(before)


def test_the_plan_says_what_grows_to_what() -> None:
    world = resized(at_rest())
    plan = world.hook.answer("/plan", world.request())
    assert plan["claims"]["grow"] == {"data-web-0": "2Gi", "data-web-1": "2Gi"}
    assert "grow" not in at_rest().hook.answer("/plan", at_rest().request())["claims"]


@pytest.mark.parametrize(
    "size", ["1Gi", "1024Mi", "1073741824", 1073741824, "1.0Gi", "1e3", "512Mi"]
)
def test_what_is_not_more_is_not_written(size: Any) -> None:
    world = resized(at_rest(), size)
    assert not_grown(world) == ""
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
def test_sizes_are_numbers_however_they_are_written(size: Any, becomes: str) -> None:
    world = resized(at_rest(replicas=1), size)
    world.sync()
    assert sizes(world) == {"data-web-0": becomes}
    world.sync()
    assert world.writes == []


def test_a_claim_that_was_grown_by_hand_stays_as_large() -> None:
    world = edited(at_rest(), "data-web-0", resources={"requests": {"storage": "5Gi"}})
    resized(world).settle()
    assert sizes(world) == {"data-web-0": "5Gi", "data-web-1": "2Gi"}


def test_a_killed_instance_has_its_claim_grown() -> None:
    world = at_rest().change(statuses={"0": "Killed"}).settle()
    resized(world).settle()
    assert sizes(world) == {"data-web-0": "2Gi", "data-web-1": "2Gi"}


def test_what_is_scaled_away_grows_when_it_comes_back() -> None:
    world = at_rest().change(replicas=1).settle()
    resized(world).settle()
    assert sizes(world) == {"data-web-0": "2Gi", "data-web-1": "1Gi"}
    world.change(replicas=2).settle()
    assert sizes(world) == {"data-web-0": "2Gi", "data-web-1": "2Gi"}


def test_each_claim_follows_its_own_template() -> None:
    spec = {"volumeClaimTemplates": [template(), template(name="logs")]}
    world = at_rest(parent=tapp(replicas=1, **spec))
    world.change(volumeClaimTemplates=[template(), template("3Gi", name="logs")]).settle()
    assert sizes(world) == {"data-web-0": "1Gi", "logs-web-0": "3Gi"}


@pytest.mark.parametrize("paused", [True, False])
def test_neither_a_pause_nor_a_broken_instance_keeps_a_volume_small(paused: bool) -> None:
    world = at_rest().change(updateStrategy={"paused": paused})
    world.modify(0, builders.crashing)
    resized(world).sync()
    assert set(sizes(world).values()) == {"2Gi"}


def test_the_older_place_of_the_class_counts() -> None:
    world = at_rest(replicas=1)
    claim = world.claims["data-web-0"]
    older = {**claim["metadata"]["annotations"], "volume.beta.kubernetes.io/storage-class": "slow"}
    world.claims["data-web-0"] = builders.with_meta(claim, annotations=older)
    assert "'slow'" in not_grown(resized(world))


# --- what waits, silently -------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["Pending", "Lost", None])
def test_a_claim_without_a_volume_waits_for_one(phase: str | None) -> None:
    world = at_rest(replicas=1)
    claim = world.claims["data-web-0"]
    world.claims["data-web-0"] = {**claim, "status": {"phase": phase}}
    assert not_grown(resized(world)) == ""
    assert world.writes == []
    world.claims["data-web-0"] = claim
    world.sync()
    assert sizes(world) == {"data-web-0": "2Gi"}


def test_a_claim_on_its_way_out_is_left_alone() -> None:
    world = at_rest(replicas=1)
    world.claims["data-web-0"] = terminating(world.claims["data-web-0"])
    assert not_grown(resized(world)) == ""
    assert world.writes == []


@pytest.mark.parametrize("name", ["data-web-x", "data-web-01", "data-web-0-9", "other-web-0"])
def test_claims_that_are_no_instances_are_left_alone(name: str) -> None:
    world = at_rest(replicas=1)
    world.claims = {name: builders.with_meta(world.claims["data-web-0"], name=name)}
    world.claims["data-web-0"] = at_rest(replicas=1).claims["data-web-0"]
    resized(world).sync()
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
)
def test_a_claim_of_an_odd_shape_is_answered_as_it_is(part: Document) -> None:
    world = resized(at_rest(replicas=1))
    world.claims["data-web-0"] = {**world.claims["data-web-0"], **part}
    plan = world.hook.answer("/plan", world.request())
    assert plan["claims"] == {"keep": ["data-web-0"], "create": [], "delete": []}
    assert world.hook.post("/sync", world.request()).status_code == 200


@pytest.mark.parametrize(
    "resources", [None, [], {"requests": None}, {"requests": {"storage": "?"}}]
)
def test_a_template_without_a_size_asks_for_nothing(resources: Any) -> None:
    odd = template()
    odd["spec"]["resources"] = resources
    world = at_rest(replicas=1).change(volumeClaimTemplates=[odd])
    assert not_grown(world) == ""
    assert world.writes == []


# --- what is refused, and said --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classes", "said"),
    [
        ([storage_class(grows=False)], "StorageClass 'standard' does not allow it"),
        ([storage_class(grows=None)], "StorageClass 'standard' does not allow it"),
        ([storage_class("other")], "there is no StorageClass 'standard'"),
        ([], "there is no StorageClass 'standard'"),
        ([{**storage_class(), "allowVolumeExpansion": "yes"}], "there is no StorageClass"),
    ],
)
def test_where_the_class_does_not_allow_it_nothing_is_tried(
    classes: list[Document], said: str
) -> None:
    world = at_rest(replicas=3, classes=classes)
    found = not_grown(resized(world))
    assert found.startswith(
        "NotExpandable: claims data-web-N (N: 0-2) ask for 1Gi, their template for 2Gi: "
    )
    assert said in found
    assert world.writes == []
    degraded = condition(world.sync(), "Degraded")
    assert degraded is not None
    assert degraded["reason"] == "ClaimsNotGrown"
    world.classes = STANDARD
    assert not_grown(world) == ""
    assert set(sizes(world).values()) == {"2Gi"}


@pytest.mark.parametrize("name", ["", None])
def test_a_claim_without_a_class_cannot_grow(name: str | None) -> None:
    world = edited(at_rest(replicas=1), "data-web-0", storageClassName=name)
    assert "they have no StorageClass" in not_grown(resized(world))
    assert sizes(world) == {"data-web-0": "1Gi"}


def test_a_request_that_shows_no_classes_says_so() -> None:
    world = resized(at_rest(replicas=1))
    request = world.request()
    del request["related"]["StorageClass.storage.k8s.io/v1"]
    found = condition(world.hook.sync(request), "ClaimsNotGrown")
    assert found is not None
    assert "shows no StorageClasses" in found["message"]


def test_a_claims_own_limit_is_not_passed() -> None:
    limits = {"requests": {"storage": "1Gi"}, "limits": {"storage": "1536Mi"}}
    world = edited(at_rest(replicas=1), "data-web-0", resources=limits)
    assert "limits.storage is 1536Mi" in not_grown(resized(world, limits={"storage": "4Gi"}))
    assert world.writes == []
    resized(world, "1500Mi").sync()
    assert world.claims["data-web-0"]["spec"]["resources"] == {
        "requests": {"storage": "1500Mi"},
        "limits": {"storage": "1536Mi"},
    }


def test_what_the_driver_cannot_do_is_said() -> None:
    world = resized(at_rest()).settle()
    claim = world.claims["data-web-1"]
    said = {"allocatedResourceStatuses": {"storage": "ControllerResizeInfeasible"}}
    world.claims["data-web-1"] = {**claim, "status": {**claim["status"], **said}}
    found = not_grown(world)
    assert found.startswith("Infeasible: claims data-web-N (N: 1) ask for 2Gi")
    assert "see its messages with `kubectl describe pvc data-web-1 -n shop`" in found
    assert world.writes == []


def test_different_troubles_stand_in_one_message() -> None:
    world = edited(at_rest(replicas=4), "data-web-1", storageClassName="slow")
    edited(world, "data-web-3", storageClassName="")
    world.classes = [storage_class(), storage_class("slow", grows=False)]
    found = not_grown(resized(world))
    assert "(N: 1)" in found
    assert "(N: 3)" in found
    assert sizes(world) == {
        "data-web-0": "2Gi",
        "data-web-1": "1Gi",
        "data-web-2": "2Gi",
        "data-web-3": "1Gi",
    }


# --- the registration -----------------------------------------------------------------------------


def test_an_older_registration_gets_the_answers_that_it_always_got() -> None:
    world = resized(at_rest())
    older = world.request(classes=None)
    answer = world.hook.answer("/sync", older)
    assert condition(answer, "ClaimsNotGrown") is None
    child = desired(answer, "PersistentVolumeClaim")["data-web-0"]
    assert child.keys() == {"apiVersion", "kind", "metadata"}
    assert child["metadata"].keys() == {"name", "namespace", "labels"}
    plan = world.hook.answer("/plan", older)
    assert plan["claims"].keys() == {"keep", "create", "delete"}


def test_classes_are_asked_for_where_claims_may_grow() -> None:
    request = builders.request(tapp(volumeClaimTemplates=[template()]), classes=[])
    assert Hook().answer("/customize", request) == {
        "relatedResources": [
            {"apiVersion": "v1", "resource": "namespaces", "names": [builders.NAMESPACE]},
            {"apiVersion": "storage.k8s.io/v1", "resource": "storageclasses", "labelSelector": {}},
        ]
    }
    without = builders.request(tapp(), classes=[])
    assert Hook().answer("/customize", without) == {"relatedResources": []}


def test_claims_of_an_older_registration_get_no_write_from_a_newer_one() -> None:
    world = at_rest()
    world.classes = None
    world.settle()
    world.classes = STANDARD
    world.sync()
    assert world.writes == []


def test_claims_of_the_old_controller_get_one_write_of_an_annotation() -> None:
    world = at_rest()
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
    """A claim that Metacontroller did not make."""
    return builders.with_meta(claim, annotations=None, ownerReferences=None)


def test_a_claim_of_the_old_controller_grows_and_rests() -> None:
    world = at_rest(replicas=1)
    world.claims = {name: adopted(claim) for name, claim in world.claims.items()}
    before = world.claims["data-web-0"]
    resized(world).sync()
    after = world.claims["data-web-0"]
    assert after["spec"] == {**before["spec"], "resources": {"requests": {"storage": "2Gi"}}}
    for _ in range(2):
        world.sync()
        assert world.writes == []


def test_a_claim_that_lost_the_annotation_and_one_that_somebody_broke() -> None:
    world = resized(at_rest(replicas=1)).settle()
    claim = world.claims["data-web-0"]
    for text in ("", "[]", "{", '{"metadata":[]}', '{"metadata":{"annotations":1}}', "null"):
        broken = builders.with_meta(claim, annotations={LAST_APPLIED: text, "note": "x"})
        world.claims["data-web-0"] = broken
        child = desired(world.hook.answer("/sync", world.request()), "PersistentVolumeClaim")
        assert child["data-web-0"]["metadata"]["name"] == "data-web-0"
        assert LAST_APPLIED not in str(child["data-web-0"])


def test_labels_and_annotations_of_others_stay() -> None:
    world = at_rest(replicas=1)
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
    resized(world).sync()
    after = world.claims["data-web-0"]["metadata"]
    for part in ("labels", "finalizers", "ownerReferences"):
        assert after[part] == mine["metadata"][part]
    assert after["annotations"]["note"] == "mine"


def namesake() -> World:
    """A TApp that has its Namespace's name, at rest."""
    parent = tapp(replicas=1, volumeClaimTemplates=[template()])
    name = builders.NAMESPACE
    world = World(builders.with_meta(parent, name=name), classes=STANDARD)
    world.sync()
    world.claims = {key: bound(claim) for key, claim in world.claims.items()}
    world.kubelet()
    return world


def test_a_tapp_with_the_name_of_its_namespace_keeps_both_owners() -> None:
    """Metacontroller tells owners apart by name: one of them would take the other's place."""
    world = namesake()
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
    resized(world).sync()
    after = world.claims[claim]
    assert (storage(after), after["metadata"]["ownerReferences"]) == ("2Gi", owners)
    world.sync()
    assert world.writes == []


def tampered(world: World, owners: Any) -> World:
    """Somebody wrote these owners of the claim into Metacontroller's annotation."""
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
def test_both_owners_stay_whatever_the_annotation_says(owners: Any) -> None:
    world = namesake()
    (claim,) = world.claims.values()
    tampered(world, owners).sync()
    (after,) = world.claims.values()
    assert after["metadata"]["ownerReferences"] == claim["metadata"]["ownerReferences"]


def test_where_nothing_leaves_both_owners_alone_the_api_server_refuses_the_write() -> None:
    world = namesake()
    (claim,) = world.claims.values()
    owners = claim["metadata"]["ownerReferences"]
    answer = world.hook.answer("/sync", tampered(world, owners).request())
    (child,) = desired(answer, "PersistentVolumeClaim").values()
    assert child["metadata"]["ownerReferences"] == [{"uid": owner["uid"]} for owner in owners]


def test_finalize_changes_nothing_of_a_claim_that_stays() -> None:
    world = resized(at_rest())
    answer = world.hook.finalize(world.request(finalizing=True))
    assert set(desired(answer, "PersistentVolumeClaim")) == {"data-web-0", "data-web-1"}
    request = world.request(finalizing=True)
    assert [write for write in writes(request, answer) if "update" in write] == []


# --- whatever the sizes ---------------------------------------------------------------------------

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
def test_no_claim_ever_shrinks_and_each_is_written_once(
    has: list[str], wants: str | int, grows: bool, known: list[bool]
) -> None:
    parent = tapp(replicas=len(has), volumeClaimTemplates=[template(wants)])
    world = World(parent, hook=_HOOK, classes=[storage_class(grows=grows)])
    for id, size in enumerate(has):
        made = desired(World(parent, hook=_HOOK).sync(), "PersistentVolumeClaim")[f"data-web-{id}"]
        made["spec"]["resources"]["requests"]["storage"] = quantity(size)
        claim = bound(builders.stored(made, parent))
        world.claims[f"data-web-{id}"] = claim if known[id] else adopted(claim)
    world.sync()
    for id, size in enumerate(has):
        after = storage(world.claims[f"data-web-{id}"])
        more = compare(quantity(wants), quantity(size)) > 0
        assert compare(after, quantity(wants if more and grows else size)) == 0
    world.sync()
    assert not [write for write in world.writes if "PersistentVolumeClaim" in write]


def test_a_claim_grows_by_the_value_of_its_instance_whatever_another_one_lacks() -> None:
    own = [template("$(tapp.values.size)"), template("$(tapp.values.more)", name="logs")]
    values = {"size": "1Gi", "more": "1Gi"}
    parent = tapp(replicas=2, volumeClaimTemplates=own, defaultValues=values)
    world = at_rest(parent=parent)
    assert set(sizes(world).values()) == {"1Gi"}
    world.change(values={"1": {"size": "2Gi"}}, defaultValues={"size": "1Gi"}).sync()
    assert sizes(world) == {
        "data-web-0": "1Gi", "data-web-1": "2Gi", "logs-web-0": "1Gi", "logs-web-1": "1Gi",
    }  # fmt: skip
