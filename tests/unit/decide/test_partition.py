"""The partition: who is kept, at which revision, and what becomes of it."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import Document, crashing, tapp, template
from tests.sizes import size
from tests.unit.decide.test_order import annotated
from tests.unit.world import Hook, World, condition

REVISION = "tapp_template_hash_key"
Step = Callable[[World], Any]


def web(tag: object, **more: Any) -> Document:
    return template(f"web:{tag}", **more)


def world(replicas: int = 6, **spec: Any) -> World:
    """A TApp at `web:1`, come to rest."""
    return World(tapp(replicas=replicas, template=web(1), **spec), history=True).settle()


def tags(found: World) -> str:
    """The tag that each instance runs, by number: `2211`; `-` where there is no pod."""
    replicas = found.parent["spec"]["replicas"]
    there = [f"web-{id}" in found.pods for id in range(replicas)]
    return "".join(
        found.container(id)["image"].rpartition(":")[2] if here else "-"
        for id, here in enumerate(there)
    )


def to(tag: object, partition: Any = None, **strategy: Any) -> Step:
    """A roll to another image; whatever the strategy does not say stays as it was."""

    def change(found: World) -> None:
        before = found.parent["spec"].get("updateStrategy") or {}
        changed = {**before, **strategy}
        if partition is not None:
            changed["partition"] = partition
        found.change(template=web(tag), updateStrategy=changed).settle()

    return change


def partition(value: Any, **strategy: Any) -> Step:
    """Another partition, or none."""

    def change(found: World) -> None:
        before = found.parent["spec"].get("updateStrategy") or {}
        changed = {**before, "partition": value, **strategy}
        kept = {key: item for key, item in changed.items() if item is not None}
        found.change(updateStrategy=kept).settle()

    return change


def edit(**spec: Any) -> Step:
    return lambda found: found.change(**spec).settle()


def lose(*ids: int) -> Step:
    """Pods are gone, with all that was annotated on them."""

    def change(found: World) -> None:
        for id in ids:
            del found.pods[f"web-{id}"]

    return change


def then(found: World) -> None:
    found.settle()


def prior(id: int, text: str) -> Step:
    return lambda found: found.modify(id, annotated(text))


def forget(found: World) -> None:
    """Somebody deletes all ControllerRevisions."""
    found.revisions.clear()


def begin(tag: object, syncs: int = 1, **strategy: Any) -> Step:
    """A roll that has not come far: one instance a sync."""

    def change(found: World) -> None:
        found.change(template=web(tag), updateStrategy=strategy)
        for _ in range(syncs):
            found.sync()
            found.kubelet()

    return change


def play(steps: Iterable[Step], **spec: Any) -> World:
    found = world(**spec)
    for step in steps:
        step(found)
    return found.settle()


# --- how many, and who ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "replicas", "kept"),
    [
        (0, 4, 0),
        (1, 4, 1),
        (4, 4, 4),
        (9, 4, 4),
        ("0%", 4, 0),
        ("1%", 4, 1),
        ("25%", 4, 1),
        ("26%", 4, 2),
        ("030%", 4, 2),
        ("99%", 4, 3),
        ("100%", 4, 4),
        ("99%", 1, 1),
        ("1%", 1, 1),
        ("50%", 3, 2),
    ],
)
def test_how_many_are_kept(value: Any, replicas: int, kept: int) -> None:
    """Numbers as a StatefulSet's, percentages as a CloneSet's: rounded up, but not to all."""
    found = play([to(2, value)], replicas=replicas)
    assert tags(found) == "2" * (replicas - kept) + "1" * kept


@pytest.mark.parametrize("value", [-1, "-1", "1", "101%", "x", "", "30 %", "1e1%", "999999999999%"])
def test_what_is_no_partition_lets_nothing_be_updated_and_is_said(value: Any) -> None:
    found = play([to(2, value)])
    assert tags(found) == "111111"
    problem = condition(found.parent["status"], "InvalidPartition")
    assert problem is not None
    assert f"{value!r} is neither a number from 0 nor a percentage" in problem["message"]
    assert condition(found.parent["status"], "Degraded")["reason"] == "InvalidPartition"
    # Everything else goes on: an instance is made, with what the others have.
    assert tags(play([to(2, value), edit(replicas=7)])) == "1111111"
    assert tags(play([to(2, value), partition(None)])) == "222222"


@pytest.mark.parametrize(("value", "after"), [(4, "221111"), ("100%", "111111"), (0, "222222")])
def test_a_partition_of_a_template_that_is_not_there_lets_nothing_be_updated(
    value: Any, after: str
) -> None:
    """A typo in the rolling template's name: the partition kept nobody any more."""
    pool = {"app": web(1), "canary": web(7)}
    found = World(tapp(replicas=6, templatePool=pool, defaultTemplateName="app"), history=True)
    found.settle()
    strategy = {"partition": value, "maxUnavailable": 6}
    found.change(templatePool={**pool, "app": web(2)}, updateStrategy=strategy).settle()
    before = tags(found)
    found.change(updateStrategy={**strategy, "template": "ap"}, templates={"0": "canary"}).settle()
    if value == 0:
        assert tags(found) == "722222"
        return
    assert tags(found) == before == after
    for type in ("InvalidPartition", "RollingTemplateUnused"):
        said = condition(found.parent["status"], type)
        assert said is not None
        assert "there is no" in said["message"]
        assert "is updated" in said["message"]
    lose(3, 5)(found)
    assert tags(found.settle()) == before
    found.change(updateStrategy=strategy, templates={}).settle()
    assert tags(found) == before


@pytest.mark.parametrize("value", [True, 1.5, [], {}])
def test_what_is_no_value_for_it_is_an_error(value: Any) -> None:
    found = World(tapp(updateStrategy={"partition": value}))
    assert Hook().post("/sync", found.request()).status_code == 400


STORIES: dict[str, tuple[list[Step], str]] = {
    "the last in the order": ([to(2, 2)], "222211"),
    "descending": ([to(2, 2, order="Descending")], "112222"),
    "those with a low priority": ([prior(0, "-1"), to(2, 2)], "122221"),
    "all": ([to(2, 6)], "111111"),
    "none": ([to(2, 0)], "222222"),
    # What becomes of a pod.
    "a lost pod comes back": ([to(2, 2), lose(5)], "222211"),
    "all pods are lost": ([to(2, 2), lose(0, 1, 2, 3, 4, 5)], "222211"),
    "lost before the roll": ([lose(5), to(2, 2)], "222211"),
    "lost with its priority": ([prior(0, "-1"), to(2, 2), lose(0)], "122221"),
    "twice": ([prior(0, "-1"), to(2, 2), lose(0), then, lose(0, 5)], "122221"),
    "a priority that comes late": ([to(2, 2), prior(5, "9"), lose(4)], "222211"),
    "a priority that comes in the roll": (
        [begin(2, 2, partition=2), prior(5, "9"), prior(0, "-9")],
        "222211",
    ),
    # Further on, and back.
    "lowered": ([to(2, 4), partition(2)], "222211"),
    "lowered by priority": ([to(2, 3), prior(5, "9"), partition(2)], "222112"),
    "removed": ([to(2, 4), partition(None)], "222222"),
    "raised": ([to(2, 2), partition(4)], "222211"),
    "raised, and a pod is lost": ([to(2, 2), partition(4), lose(3, 5)], "222211"),
    "raised while a pod is lost": ([to(2, 2), lose(3, 5), partition(4)], "222211"),
    "raised in the roll": ([begin(2, 2), partition(2)], "222211"),
    "the order turns round": ([to(2, 2), partition(2, order="Descending")], "222211"),
    "rolled back": ([to(2, 2), to(1)], "111111"),
    "rolled back, and a pod is lost": ([to(2, 2), to(1), lose(5, 0)], "111111"),
    "rolled back and on": ([to(2, 2), to(1), to(2), lose(5)], "222211"),
    "rolled back by the order's other end": ([to(2, 2), to(1, order="Descending")], "221111"),
    "a second roll": ([to(2, 2), to(3)], "333311"),
    "a second roll that keeps more": ([to(2, 2), to(3, 4)], "332211"),
    "a second roll, and pods are lost": ([to(2, 2), to(3, 4), lose(2, 3, 4)], "332211"),
    "a second roll over lost pods": ([to(2, 2), lose(3, 4), to(3, 4)], "332211"),
    "a third": ([to(2, 2), to(3, 3), to(4, 4), lose(2, 3, 4, 5)], "443211"),
    "then all": ([to(2, 2), to(3, 4), partition(0)], "333333"),
    # Fewer instances, and more.
    "scaled down and up": ([to(2, 2), edit(replicas=4), edit(replicas=6)], "222211"),
    "scaled to 0 and up": ([to(2, 2), edit(replicas=0), edit(replicas=6)], "222211"),
    "scaled down": ([to(2, 2), edit(replicas=5)], "22221"),
    "two revisions, scaled away and back": (
        [to(2, 2), to(3, 4), edit(replicas=1), edit(replicas=6)],
        "332211",
    ),
    "scaled up by a number": ([to(2, 2), edit(replicas=8)], "22221122"),
    "scaled up by a share": ([to(2, "50%"), edit(replicas=8)], "22211121"),
    "scaled up, descending": ([to(2, 4, order="Descending"), edit(replicas=8)], "11112222"),
    "fewer than are kept, scaled up": (
        [edit(replicas=2), to(2, 4, order="Descending"), edit(replicas=6)],
        "111122",
    ),
    "new from the beginning": ([edit(replicas=0), to(2, 2), edit(replicas=6)], "222211"),
    # Killed, finished, broken.
    "killed and started": ([to(2, 2), edit(statuses={"5": "Killed"}), edit(statuses={})], "222211"),
    "killed before the roll": (
        [edit(statuses={"5": "Killed"}), to(2, 2), edit(statuses={})],
        "222211",
    ),
    "a killed one keeps its place": ([edit(statuses={"5": "Killed"}), to(2, 2)], "22221-"),
    "killed, and rolled on": (
        [to(2, 2), edit(statuses={"5": "Killed"}), to(3, 3), edit(statuses={})],
        "333211",
    ),
    "a broken one that is kept": (
        [lambda found: found.modify(5, crashing), begin(2, 9, partition=2)],
        "222211",
    ),
    # Other templates.
    "the force group goes its way": (
        [edit(templatePool={"x": web(7)}, templates={"4": "x"}), to(2, 2)],
        "222171",
    ),
    "into the force group and back": (
        [
            edit(templatePool={"x": web(7)}),
            to(2, 2),
            edit(templates={"5": "x"}),
            edit(templates={}),
        ],
        "222212",
    ),
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_who_is_kept_has_what_it_had(story: tuple[list[Step], str]) -> None:
    steps, expected = story
    assert tags(play(steps)) == expected


# --- what the status says -------------------------------------------------------------------------


def revisions(found: World) -> tuple[str, str]:
    """`currentRevision` and `updateRevision` as the image's tag that they stand for."""
    named = {
        item["metadata"]["labels"][REVISION]: item["data"]["template"]["spec"]["containers"][0]
        for item in found.revisions.values()
    }
    status = found.parent["status"]
    current, update = (
        named[status[field]]["image"].rpartition(":")[2]
        for field in ("currentRevision", "updateRevision")
    )
    return current, update


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], ("1", "1")),
        ([begin(2, 1)], ("1", "2")),
        ([begin(2, 2), begin(3, 1)], ("1", "3")),
        ([to(2)], ("2", "2")),
        ([to(2, 2)], ("1", "2")),
        ([to(2, 2), to(3)], ("1", "3")),
        ([to(2, 2), to(1)], ("1", "1")),
        ([to(2, 2), partition(0)], ("2", "2")),
        ([to(2, 2), partition("0%")], ("2", "2")),
        ([to(2, 6)], ("1", "2")),
        ([to(2, "x")], ("1", "2")),
        ([to(2, 2), edit(replicas=0)], ("1", "2")),
        ([edit(replicas=0), to(2)], ("2", "2")),
    ],
)
def test_the_status_names_both_revisions_as_a_stateful_sets(
    steps: list[Step], expected: tuple[str, str]
) -> None:
    """Both are labels of ControllerRevisions; the roll is complete when they are the same."""
    found = world()
    for step in steps:
        step(found)
    found.sync()
    if expected != ("2", "2") or found.parent["spec"]["replicas"]:
        assert revisions(found) == expected
    else:
        status = found.parent["status"]
        assert status["currentRevision"] == status["updateRevision"]


def test_a_roll_that_has_reached_its_partition_is_complete() -> None:
    found = play([to(2, 2)])
    status = found.parent["status"]
    first = found.pod(0)["metadata"]["labels"][REVISION]
    last = found.pod(5)["metadata"]["labels"][REVISION]
    assert (status["updateRevision"], status["currentRevision"]) == (first, last)
    assert status["kept"] == {last: "4,5"}
    assert (status["replicas"], status["updatedReplicas"], status["availableReplicas"]) == (6, 4, 6)
    assert status["templates"]["default"]["updatedReplicas"] == 4
    assert not {"outdated", "progressed"} & status.keys()
    message = (
        f"4 of 6 updated; updateStrategy.partition 2 keeps instances 4, 5 at revision {last}; "
        "`kubectl tapp advance web -n shop` updates them, too"
    )
    for type, value in (("Progressing", "False"), ("Ready", "True")):
        said = condition(status, type)
        assert said is not None
        assert (said["status"], said["message"]) == (value, message)
    assert condition(status, "Ready")["reason"] == "PartitionReached"  # type: ignore[index]
    assert found.decisions()[5] == "Keep/Kept"
    plan = found.hook.answer("/plan", found.request())["instances"]
    assert plan[5]["message"] == f"the partition keeps it at revision {last}"


def test_what_is_kept_is_noted_only_while_a_partition_is_set() -> None:
    for value in (None, 0, "0%"):
        assert "kept" not in play([to(2, 2), partition(value)]).parent["status"]
    found = play([to(2, 2), edit(replicas=3)])
    assert sorted(found.parent["status"]["kept"].values()) == ["1,2", "4,5"]


@pytest.mark.parametrize(
    "status",
    [
        {"kept": "4,5", "currentRevision": 5, "updateRevision": ["x"]},
        {"kept": {"v1-0": "0-99999,0-99999", "": "x", "v1-1": None}, "currentRevision": ""},
        {"kept": {"v1-0": "5"}},
        {"kept": {"v1-" + "0" * 200_000: "5", "unknown": "4-99999"}, "currentRevision": "x" * 999},
        None,
    ],
)
def test_pods_stay_whatever_somebody_made_of_the_status(status: Document | None) -> None:
    found = play([to(2, 2)])
    kept = {} if status is None else {**found.parent["status"], **status}
    found.parent = {**found.parent, "status": kept}
    found.settle()
    assert tags(found) == "222211"
    assert revisions(found) in {("1", "2"), ("2", "2")}


def test_a_service_that_is_new_comes_into_the_middle_of_a_roll() -> None:
    """An earlier release noted neither revision: pods and history tell, and nothing is touched."""
    found = world()
    begin(2, 3)(found)
    before = {key: item for key, item in found.parent["status"].items() if "Revision" not in key}
    found.parent = {**found.parent, "status": before}
    found.change(updateStrategy={"partition": 3})
    found.sync()
    assert not [line for line in found.writes if line != "update Pod/web-2"]
    assert revisions(found) == ("1", "2")
    lose(5)(found)
    assert tags(found.settle()) == "222111"


# --- what the history does not have ---------------------------------------------------------------


def test_a_kept_pod_stays_though_its_revision_is_gone_and_is_not_made_of_another() -> None:
    """It waits: what a partition keeps back must not come by itself."""
    found = play([to(2, 2), forget])
    assert tags(found) == "222211"
    assert condition(found.parent["status"], "Ready")["status"] == "True"  # type: ignore[index]
    plan = found.hook.answer("/plan", found.request())["instances"]
    assert (plan[5]["action"], plan[5]["reason"]) == ("Keep", "Kept")
    assert "which the history does not have" in plan[5]["message"]
    lose(5)(found)
    found.settle()
    assert tags(found) == "22221-"
    assert found.decisions()[5] == "Absent/RevisionNotFound"
    said = condition(found.parent["status"], "RevisionsNotFound")
    assert said is not None
    assert "instances 5 at v1-" in said["message"]
    assert condition(found.parent["status"], "Degraded")["reason"] == "RevisionsNotFound"  # type: ignore[index]
    partition(1, maxUnavailable=2)(found)
    assert tags(found) == "22222-"
    partition(0)(found)
    assert tags(found) == "222222"


def test_a_template_that_comes_back_brings_the_kept_ones_back() -> None:
    found = play([to(2, 2), forget, lose(4, 5)])
    assert tags(found) == "2222--"
    to(1)(found)
    assert tags(found) == "111111"


@pytest.mark.parametrize("history", [True, False])
def test_without_a_history_kept_pods_stay_and_lost_ones_wait(history: bool) -> None:
    found = World(tapp(replicas=4, template=web(1), revisionHistoryLimit=0), history=history)
    found.settle()
    to(2, 2)(found)
    assert tags(found) == "2211"
    lose(3)(found)
    assert tags(found.settle()) == "221-"
    assert tags(found.change(replicas=5).settle()) == "221-2"
    assert tags(found.change(updateStrategy=None).settle()) == "22222"


def test_the_history_keeps_what_is_kept_beyond_its_limit() -> None:
    """Seven rolls that each keep one instance more: all revisions stay until they are let go."""
    found = world(replicas=8, revisionHistoryLimit=1)
    for tag in range(2, 9):
        to(tag, tag - 1)(found)
    assert tags(found) == "87654321"
    lose(*range(8))(found)
    assert tags(found.settle()) == "87654321"
    assert len(found.revisions) == 8
    partition(0)(found)
    assert tags(found) == "88888888"
    assert len(found.revisions) == 3


def test_what_is_held_back_from_all_is_in_the_history_at_once() -> None:
    found = play([to(2, "100%")])
    assert revisions(found) == ("1", "2")


# --- everything else goes on with them ------------------------------------------------------------


def own(tag: object) -> Document:
    """A template that each instance has for itself."""
    env = [{"name": "MAP", "value": "$(tapp.values.map)"}, {"name": "N", "value": "$(tapp.index)"}]
    return web(tag, container={"env": env})


def maps(found: World) -> list[str]:
    containers = [found.container(id) for id in range(len(found.pods))]
    return [f"{each['image'].rpartition(':')[2]} {each['env'][0]['value']}" for each in containers]


def test_a_kept_one_keeps_its_own_values_too() -> None:
    """The values of its revision's record, whatever the spec says by now."""
    found = World(tapp(replicas=4, template=own(1), defaultValues={"map": "a"}), history=True)
    found.settle()
    found.change(values={"3": {"map": "b"}}).settle()
    strategy = {"partition": 2, "maxUnavailable": 4}
    found.change(template=own(2), updateStrategy=strategy, defaultValues={"map": "c"}).settle()
    assert maps(found) == ["2 c", "2 c", "1 a", "1 b"]
    uids = found.uids()
    lose(2, 3)(found)
    found.settle()
    assert maps(found) == ["2 c", "2 c", "1 a", "1 b"]
    found.change(values={"3": {"map": "d"}, "0": {"map": "e"}}).settle()
    assert maps(found) == ["2 e", "2 c", "1 a", "1 b"]
    lose(2, 3)(found)
    found.settle()
    assert maps(found) == ["2 e", "2 c", "1 a", "1 b"]
    assert found.uids()["web-1"] == uids["web-1"]
    status = found.parent["status"]
    assert status["updateRevision"].count("-") == status["currentRevision"].count("-") == 2
    partition(0)(found)
    assert maps(found) == ["2 e", "2 c", "2 c", "2 d"]


def test_a_record_that_comes_back_brings_its_values() -> None:
    """While it is away, the note of a kept one does not lose which they were."""
    found = World(tapp(replicas=4, template=own(1), defaultValues={"map": "a"}), history=True)
    found.settle()
    strategy = {"partition": 2, "maxUnavailable": 4}
    found.change(template=own(2), updateStrategy=strategy).settle()
    records, noted = dict(found.revisions), found.parent["status"]["kept"]
    forget(found)
    found.settle()
    lose(3)(found)
    found.settle()
    assert found.parent["status"]["kept"] == noted
    found.revisions.update(records)
    found.settle()
    assert maps(found) == ["2 a", "2 a", "1 a", "1 a"]


def test_resources_that_are_left_to_others_touch_no_kept_pod() -> None:
    small, large = ({"resources": {"requests": {"cpu": cpu}}} for cpu in ("1", "2"))
    found = World(tapp(replicas=4, template=web(1, container=small)), history=True).settle()
    changed = {"template": web(2, container=large), "updateStrategy": {"partition": 2}}
    found.change(**changed).settle()
    uids = found.uids()
    for mode in ("Ignore", None):
        in_place = {"inPlaceUpdateStrategy": {"resources": mode}}
        found.change(updateStrategy={"partition": 2, **in_place}).settle()
        assert tags(found) == "2211"
        assert found.uids() == uids
    lose(3)(found)
    found.settle()
    assert tags(found) == "2211"
    assert found.container(3)["resources"] == {"requests": {"cpu": "1"}}


def test_a_restart_that_is_asked_of_a_kept_pod_is_done() -> None:
    found = play([to(2, 2)])
    asked = {"apps.tkestack.io/restart-instance": "now"}

    def ask(pod: Document) -> Document:
        meta = pod["metadata"]
        return {**pod, "metadata": {**meta, "annotations": {**meta["annotations"], **asked}}}

    found.modify(5, ask)
    uid = found.uids()["web-5"]
    found.settle()
    assert tags(found) == "222211"
    assert found.uids()["web-5"] != uid, "a local image is started again by a new pod"


def test_a_template_that_cannot_be_used_leaves_what_is_kept_as_it_was() -> None:
    found = play([to(2, 2)])
    found.change(template={"spec": {"containers": "none"}})
    lose(1, 5)(found)
    found.settle()
    assert tags(found) == "2-2211"


def test_pods_of_another_controller_are_taken_over_if_they_fit_and_else_kept() -> None:
    found = play([to(2, 2)])

    def by_another(pod: Document) -> Document:
        meta = pod["metadata"]
        labels = {key: text for key, text in meta["labels"].items() if "hash_key" not in key}
        return {**pod, "metadata": {**meta, "labels": labels}}

    for id in (0, 5):
        found.modify(id, by_another)
    assert found.decisions()[0] == "Adopt/Adopted"
    assert found.decisions()[5] == "Keep/Kept"
    found.settle()
    assert tags(found) == "222211"
    lose(5)(found)
    assert tags(found.settle()) == "22221-"


def test_pods_of_two_revisions_are_made_in_one_answer() -> None:
    found = play([to(2, 3)])
    found.pods.clear()
    found.sync()
    assert tags(found) == "222111"


# --- at random ------------------------------------------------------------------------------------


def edit_only(**spec: Any) -> Step:
    return lambda found: found.change(**spec)


def lose_any(id: int) -> Step:
    return lambda found: found.pods.pop(f"web-{id}", None)


def prior_any(id: int, text: str) -> Step:
    return lambda found: found.modify(id, annotated(text)) if f"web-{id}" in found.pods else None


_ids = st.integers(0, 5)
_partitions = st.sampled_from([0, 1, 2, 3, 5, "30%", "50%", "99%", None, "x"])
_steps = st.one_of(
    st.builds(lambda tag: edit_only(template=web(tag)), st.integers(1, 4)),
    st.builds(
        lambda value, order: edit_only(updateStrategy={"partition": value, "order": order}),
        _partitions,
        st.sampled_from([None, "Ascending", "Descending"]),
    ),
    st.builds(lambda count: edit_only(replicas=count), st.integers(0, 6)),
    st.builds(lambda ids: edit_only(statuses={str(id): "Killed" for id in ids}), st.sets(_ids)),
    st.builds(
        lambda id, name: edit_only(templates={str(id): name}),
        _ids,
        st.sampled_from(["x", "default"]),
    ),
    st.builds(lose_any, _ids),
    st.builds(prior_any, _ids, st.sampled_from(["-1", "1", "9"])),
    st.just(lambda found: found.sync()),
    st.just(lambda found: (found.sync(), found.kubelet())),
    st.just(lambda found: found.settle()),
)


@given(st.lists(_steps, max_size=14))
@settings(max_examples=size(15, 400), deadline=None)
def test_whatever_comes_the_kept_are_so_many_and_have_what_they_had(steps: list[Step]) -> None:
    """`tests.invariants` holds every answer to that (`tests/kept.py`)."""
    found = World(tapp(replicas=4, template=web(1), templatePool={"x": web(7)}), history=True)
    for step in steps:
        step(found)
    found.settle()
    found.change(updateStrategy=None, statuses=None).settle()
    newest = found.parent["spec"]["template"]["spec"]["containers"][0]["image"][-1]
    assert set(tags(found)) <= {newest, "7"}
