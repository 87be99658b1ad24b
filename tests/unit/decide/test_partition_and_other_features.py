"""Tests kept instances together with other features: values, resources, restarts, adoption; and
random edits.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import Document, tapp
from tests.sizes import size
from tests.unit.decide.partitions import (
    PRIORITY,
    Step,
    delete_revisions,
    image_tags,
    lose_pods,
    play,
    roll_out,
    set_partition,
    web_template,
)
from tests.unit.decide.pods import annotated
from tests.unit.world import World

# --- kept instances and other features ------------------------------------------------------------


def template_with_values(tag: object) -> Document:
    """Returns a template with the image `web:TAG` that reads a value and the instance number."""
    env = [{"name": "MAP", "value": "$(tapp.values.map)"}, {"name": "N", "value": "$(tapp.index)"}]
    return web_template(tag, container={"env": env})


def tags_and_values(found: World) -> list[str]:
    containers = [found.container(id) for id in range(len(found.pods))]
    return [f"{each['image'].rpartition(':')[2]} {each['env'][0]['value']}" for each in containers]


def test_kept_instance_keeps_the_values_of_its_revision() -> None:
    """Changes values after a rollout with a partition: a kept instance has its earlier values, also
    in a new pod.
    """
    found = World(
        tapp(replicas=4, template=template_with_values(1), defaultValues={"map": "a"}), history=True
    )
    found.settle()
    found.change(values={"3": {"map": "b"}}).settle()
    strategy = {"partition": 2, "maxUnavailable": 4}
    found.change(
        template=template_with_values(2), updateStrategy=strategy, defaultValues={"map": "c"}
    ).settle()
    assert tags_and_values(found) == ["2 c", "2 c", "1 a", "1 b"]
    uids = found.uids()
    lose_pods(2, 3)(found)
    found.settle()
    assert tags_and_values(found) == ["2 c", "2 c", "1 a", "1 b"]
    found.change(values={"3": {"map": "d"}, "0": {"map": "e"}}).settle()
    assert tags_and_values(found) == ["2 e", "2 c", "1 a", "1 b"]
    lose_pods(2, 3)(found)
    found.settle()
    assert tags_and_values(found) == ["2 e", "2 c", "1 a", "1 b"]
    assert found.uids()["web-1"] == uids["web-1"]
    status = found.parent["status"]
    assert status["updateRevision"].count("-") == status["currentRevision"].count("-") == 2
    set_partition(0)(found)
    assert tags_and_values(found) == ["2 e", "2 c", "2 c", "2 d"]


def test_kept_instance_gets_its_values_again_when_its_revision_is_restored() -> None:
    """Deletes the history and restores it later: a lost kept pod is created again with its earlier
    values.

    The status still names the revision while the ControllerRevision is missing.
    """
    found = World(
        tapp(replicas=4, template=template_with_values(1), defaultValues={"map": "a"}), history=True
    )
    found.settle()
    strategy = {"partition": 2, "maxUnavailable": 4}
    found.change(template=template_with_values(2), updateStrategy=strategy).settle()
    records, noted = dict(found.revisions), found.parent["status"]["kept"]
    delete_revisions(found)
    found.settle()
    lose_pods(3)(found)
    found.settle()
    assert found.parent["status"]["kept"] == noted
    found.revisions.update(records)
    found.settle()
    assert tags_and_values(found) == ["2 a", "2 a", "1 a", "1 a"]


def test_change_of_the_resources_mode_does_not_update_kept_pods() -> None:
    small, large = ({"resources": {"requests": {"cpu": cpu}}} for cpu in ("1", "2"))
    found = World(
        tapp(replicas=4, template=web_template(1, container=small)), history=True
    ).settle()
    changed = {"template": web_template(2, container=large), "updateStrategy": {"partition": 2}}
    found.change(**changed).settle()
    uids = found.uids()
    for mode in ("Ignore", None):
        in_place = {"inPlaceUpdateStrategy": {"resources": mode}}
        found.change(updateStrategy={"partition": 2, **in_place}).settle()
        assert image_tags(found) == "2211"
        assert found.uids() == uids
    lose_pods(3)(found)
    found.settle()
    assert image_tags(found) == "2211"
    assert found.container(3)["resources"] == {"requests": {"cpu": "1"}}


def test_kept_pod_is_restarted_on_request() -> None:
    found = play([roll_out(2, 2)])
    asked = {"apps.tkestack.io/restart-instance": "now"}

    def ask(pod: Document) -> Document:
        meta = pod["metadata"]
        return {**pod, "metadata": {**meta, "annotations": {**meta["annotations"], **asked}}}

    found.modify(5, ask)
    uid = found.uids()["web-5"]
    found.settle()
    assert image_tags(found) == "222211"
    assert found.uids()["web-5"] != uid, (
        "the pod has to be replaced, because its image has no digest"
    )


def test_kept_pods_are_recreated_although_the_current_template_is_invalid() -> None:
    found = play([roll_out(2, 2)])
    found.change(template={"spec": {"containers": "none"}})
    lose_pods(1, 5)(found)
    found.settle()
    assert image_tags(found) == "2-2211"


def test_pods_of_another_controller_are_adopted_if_they_match_and_kept_if_not() -> None:
    found = play([roll_out(2, 2)])

    def by_another(pod: Document) -> Document:
        meta = pod["metadata"]
        labels = {key: text for key, text in meta["labels"].items() if "hash_key" not in key}
        return {**pod, "metadata": {**meta, "labels": labels}}

    for id in (0, 5):
        found.modify(id, by_another)
    assert found.decisions()[0] == "Adopt/Adopted"
    assert found.decisions()[5] == "Keep/Kept"
    found.settle()
    assert image_tags(found) == "222211"
    lose_pods(5)(found)
    assert image_tags(found.settle()) == "22221-"


def test_one_sync_creates_pods_of_two_revisions() -> None:
    found = play([roll_out(2, 3)])
    found.pods.clear()
    found.sync()
    assert image_tags(found) == "222111"


# --- random edits ---------------------------------------------------------------------------------


def edit_only(**spec: Any) -> Step:
    return lambda found: found.change(**spec)


def lose_if_present(id: int) -> Step:
    return lambda found: found.pods.pop(f"web-{id}", None)


def set_priority_if_present(id: int, text: str) -> Step:
    return lambda found: (
        found.modify(id, annotated(PRIORITY, text)) if f"web-{id}" in found.pods else None
    )


_ids = st.integers(0, 5)
_partitions = st.sampled_from([0, 1, 2, 3, 5, "30%", "50%", "99%", None, "x"])
_steps = st.one_of(
    st.builds(lambda tag: edit_only(template=web_template(tag)), st.integers(1, 4)),
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
    st.builds(lose_if_present, _ids),
    st.builds(set_priority_if_present, _ids, st.sampled_from(["-1", "1", "9"])),
    st.just(lambda found: found.sync()),
    st.just(lambda found: (found.sync(), found.kubelet())),
    st.just(lambda found: found.settle()),
)


@given(st.lists(_steps, max_size=14))
@settings(max_examples=size(15, 400), deadline=None)
def test_random_edits_never_update_a_kept_instance(steps: list[Step]) -> None:
    """Plays random edits and losses of pods; `tests.invariants` checks each response
    (`tests/kept_instances.py`).
    """
    found = World(
        tapp(replicas=4, template=web_template(1), templatePool={"x": web_template(7)}),
        history=True,
    )
    for step in steps:
        step(found)
    found.settle()
    found.change(updateStrategy=None, statuses=None).settle()
    newest = found.parent["spec"]["template"]["spec"]["containers"][0]["image"][-1]
    assert set(image_tags(found)) <= {newest, "7"}
