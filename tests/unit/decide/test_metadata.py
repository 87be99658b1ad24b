"""Tests updates in place of pods with labels or annotations that somebody else has changed.

An update writes only the keys whose value in the template has changed since the pod's revision.
"""

from typing import Any

import pytest

from simulator.objects.objects import with_meta
from tests.builders import Document, tapp, template
from tests.conditions import HARMLESS
from tests.unit.decide.pods import with_digest
from tests.unit.world import World, condition

HASH = "tapp_template_hash_key"
ROLE = {"app": "web", "role": "replica"}
NOTE = {"note": "first"}


def template_with_role(image: str = "nginx:1", **parts: Any) -> Document:
    """Returns a template with this image; by default it has a label `role` and an annotation
    `note`.
    """
    return template(image, **{"labels": ROLE, "annotations": NOTE, **parts})


def tapp_with_role(history: bool = True, **spec: Any) -> World:
    """Returns a TApp with one instance of such a template, after it has settled.

    `history` is True if there are ControllerRevisions.
    """
    return World(tapp(**{"template": template_with_role(), **spec}), history=history).settle()


def write_by_hand(world: World, id: int = 0, **parts: dict[str, str | None]) -> World:
    """Sets labels or annotations of a pod as a user does, then runs two syncs; returns the world.

    `parts` has the keys `labels` and `annotations`; a text that is None removes its key.
    """

    def edited(pod: Document) -> Document:
        for part, entries in parts.items():
            found = {**pod["metadata"][part], **entries}
            kept = {key: text for key, text in found.items() if text is not None}
            pod = with_meta(pod, **{part: kept})
        return with_managed_fields(pod, parts)

    world.modify(id, edited)
    world.sync()
    world.sync()
    return world


def with_managed_fields(pod: Document, parts: dict[str, dict[str, str | None]]) -> Document:
    """Returns the pod with the managed fields that the API server would keep after such an edit."""
    ours = {"f:metadata": {"f:labels": {f"f:{HASH}": {}}}}
    fields = {
        f"f:{part}": {f"f:{key}": {} for key, text in entries.items() if text is not None}
        for part, entries in parts.items()
    }
    entry = {"operation": "Update", "apiVersion": "v1", "time": "2026-01-05T10:30:00Z"}
    managed = [
        {**entry, "manager": "metacontroller", "fieldsV1": ours},
        {**entry, "manager": "kubectl-label", "fieldsV1": {"f:metadata": fields}},
    ]
    return with_meta(pod, managedFields=managed)


def author_keys(world: World, part: str, id: int = 0) -> dict[str, str]:
    """Returns the labels or annotations of a pod that come from its template or from the test.

    `part` is `labels` or `annotations`.
    """
    found = world.pod(id)["metadata"][part]
    return {key: text for key, text in found.items() if key in {"app", "role", "note", "new"}}


TEMPLATES: dict[str, Document] = {
    "another image": template_with_role("nginx:2"),
    "a default written out": template_with_role(restartPolicy="Always"),
    "another annotation": template_with_role(annotations={**NOTE, "other": "x"}),
}
"""Templates that change neither the label nor the annotation."""


@pytest.mark.parametrize("name", TEMPLATES)
def test_keys_that_somebody_changed_stay_after_an_update_in_place(name: str) -> None:
    """Changes a label and an annotation of a pod by hand, and then updates the pod: both stay.

    A program that labels its pod as the master keeps its traffic.
    """
    world = write_by_hand(tapp_with_role(), labels={"role": "master"}, annotations={"note": "mine"})
    uids = world.uids()
    world.change(template=TEMPLATES[name]).settle()
    assert world.uids() == uids
    assert set(world.decisions().values()) == {"Keep/UpToDate"}
    assert author_keys(world, "labels") == {"app": "web", "role": "master"}
    assert author_keys(world, "annotations") == {"note": "mine"}
    world.sync()
    assert world.writes == []


@pytest.mark.parametrize("name", TEMPLATES)
def test_keys_that_somebody_removed_stay_removed_after_an_update_in_place(name: str) -> None:
    """Removes a label and an annotation of a pod by hand, and then updates the pod: both stay
    removed.

    Removing a label is the usual way to take a pod out of a Service.
    """
    world = write_by_hand(tapp_with_role(), labels={"role": None}, annotations={"note": None})
    world.change(template=TEMPLATES[name]).settle()
    assert author_keys(world, "labels") == {"app": "web"}
    assert author_keys(world, "annotations") == {}


CHANGED: dict[str, tuple[dict[str, str | None], dict[str, str], dict[str, str]]] = {
    "template changes a key that somebody changed": (
        {"role": "master"}, {**ROLE, "role": "standby"}, {"app": "web", "role": "standby"},
    ),
    "template changes a key that somebody removed": (
        {"role": None}, {**ROLE, "role": "standby"}, {"app": "web", "role": "standby"},
    ),
    "template removes a key that somebody changed": (
        {"role": "master"}, {"app": "web"}, {"app": "web"},
    ),
    "template adds a key that somebody added": (
        {"new": "hand"}, {**ROLE, "new": "template"}, {**ROLE, "new": "template"},
    ),
    "template changes another key": (
        {"role": "master"}, {**ROLE, "app": "shop"}, {"app": "shop", "role": "master"},
    ),
    "template removes another key": (
        {"role": "master"}, {"role": "replica"}, {"role": "master"},
    ),
    "somebody added a key": (
        {"new": "hand"}, {**ROLE, "app": "shop"}, {**ROLE, "app": "shop", "new": "hand"},
    ),
}  # fmt: skip
"""Labels that somebody writes, the labels of the next template, and the expected labels."""


@pytest.mark.parametrize("part", ["labels", "annotations"])
@pytest.mark.parametrize("name", CHANGED)
def test_update_in_place_writes_only_keys_that_differ_between_the_templates(
    name: str, part: str
) -> None:
    by_hand, wanted, expected = CHANGED[name]
    world = tapp_with_role(template=template("nginx:1", **{part: ROLE}))
    write_by_hand(world, **{part: by_hand})
    world.change(template=template("nginx:1", **{part: wanted})).settle()
    assert set(world.decisions().values()) == {"Keep/UpToDate"}
    assert author_keys(world, part) == {
        **({"app": "web"} if part == "annotations" else {}),
        **expected,
    } or (author_keys(world, part) == expected)


def test_rollback_writes_only_keys_that_differ_between_the_templates() -> None:
    world = write_by_hand(tapp_with_role(), labels={"role": "master"})
    world.change(template=template_with_role("nginx:2", labels={**ROLE, "app": "shop"})).settle()
    assert author_keys(world, "labels") == {"app": "shop", "role": "master"}
    world.change(template=template_with_role()).settle()
    assert author_keys(world, "labels") == {"app": "web", "role": "master"}


def test_labels_of_the_service_are_always_written() -> None:
    """A user sets a label of the service to a wrong value: the next update restores it.

    The update also writes the label with the revision of the pod.
    """
    world = tapp_with_role()
    revision = world.pod(0)["metadata"]["labels"][HASH]
    write_by_hand(world, labels={"apps.kubernetes.io/pod-index": "7"})
    world.change(template=template_with_role("nginx:2")).settle()
    labels = world.pod(0)["metadata"]["labels"]
    assert labels[HASH] != revision
    assert labels["apps.kubernetes.io/pod-index"] == "0"
    assert labels["tapp_instance_key"] == "0"


@pytest.mark.parametrize(
    "strategy",
    [
        {},
        {"template": "other", "forceUpdate": {"maxUnavailable": "100%"}},
        {"inPlaceUpdateStrategy": {"resources": "Ignore"}},
    ],
    ids=["rolling", "forced", "resources ignored"],
)
def test_changed_label_stays_with_every_update_strategy(strategy: Document) -> None:
    world = write_by_hand(tapp_with_role(updateStrategy=strategy), labels={"role": "master"})
    world.change(template=template_with_role("nginx:2")).settle()
    assert author_keys(world, "labels")["role"] == "master"


def test_changed_label_stays_after_a_restart_in_place() -> None:
    """Requests a restart of a pod whose label was changed by hand: the label stays.

    The restart is requested by the pod's annotation, and the revision stays the same.
    """
    world = write_by_hand(tapp_with_role(), labels={"role": "master"})
    world.modify(0, with_digest)
    write_by_hand(world, annotations={"apps.tkestack.io/restart-instance": "now"})
    assert world.container(0)["image"] != "nginx:1"
    assert author_keys(world, "labels")["role"] == "master"


def test_container_that_reads_a_changed_label_does_not_restart() -> None:
    """Updates the metadata of a pod whose container reads a label that was changed by hand: it does
    not restart.

    The pod keeps the value of the label.
    """
    field = {"fieldRef": {"fieldPath": "metadata.labels['role']"}}
    reading = {"env": [{"name": "ROLE", "valueFrom": field}]}
    world = write_by_hand(
        tapp_with_role(template=template_with_role(container=reading)), labels={"role": "master"}
    )
    image = world.container(0)["image"]
    world.change(
        template=template_with_role(container=reading, annotations={"note": "second"})
    ).settle()
    assert author_keys(world, "labels")["role"] == "master"
    assert world.container(0)["image"] == image


def test_labels_are_compared_after_placeholders_are_filled_in() -> None:
    labels = {"app": "web", "role": "$(tapp.values.role)"}
    values = {"0": {"role": "a"}, "1": {"role": "b"}}
    strategy = {"maxUnavailable": "100%"}
    spec = {"replicas": 2, "values": values, "updateStrategy": strategy}
    world = tapp_with_role(template=template_with_role(labels=labels), **spec)
    write_by_hand(world, 0, labels={"role": "master"})
    write_by_hand(world, 1, labels={"role": "master"})
    world.change(values={"0": {"role": "a"}, "1": {"role": "c"}}).settle()
    world.change(template=template_with_role("nginx:2", labels=labels)).settle()
    assert [author_keys(world, "labels", id)["role"] for id in (0, 1)] == ["master", "c"]


# --- without a recorded revision ------------------------------------------------------------------


def test_managed_fields_show_changed_keys_without_a_history() -> None:
    """Without a history, an update keeps a changed label, which managed fields show.

    Metacontroller's last-applied annotation already contains the edit.
    """
    world = write_by_hand(tapp_with_role(history=False), labels={"role": "master"})
    world.change(template=template_with_role("nginx:2", labels={**ROLE, "app": "shop"})).settle()
    assert author_keys(world, "labels") == {"app": "shop", "role": "master"}


def test_changed_key_stays_without_a_history_although_the_template_changes_it() -> None:
    """Without a history, an update keeps a changed label even if the template has a new value for
    it.

    Without a recorded revision, the service cannot know that the template changed the key.
    """
    world = write_by_hand(tapp_with_role(history=False), labels={"role": "master"})
    world.change(
        template=template_with_role("nginx:2", labels={**ROLE, "role": "standby"})
    ).settle()
    assert author_keys(world, "labels")["role"] == "master"
    assert condition(world.sync()["status"], "MetadataEdited") is not None


def test_template_overwrites_changed_keys_without_history_and_managed_fields() -> None:
    """Without a history and managed fields, an update overwrites a changed label.

    Without both, the service cannot know that somebody changed the key.
    """
    world = write_by_hand(tapp_with_role(history=False), labels={"role": "master"})
    world.modify(0, lambda pod: with_meta(pod, managedFields=[]))
    world.change(template=template_with_role("nginx:2", labels={**ROLE, "app": "shop"})).settle()
    assert author_keys(world, "labels") == {**ROLE, "app": "shop"}


def test_changed_key_stays_without_a_history_if_the_edit_is_new() -> None:
    """Without a history, an update keeps a label that was changed since the last sync.

    Metacontroller's last-applied annotation still has the value of the template.
    """
    world = tapp_with_role(history=False)
    labels = {**world.pod(0)["metadata"]["labels"], "role": "master"}
    world.modify(0, lambda pod: with_meta(pod, labels=labels))
    world.change(template=template_with_role("nginx:2")).settle()
    assert author_keys(world, "labels")["role"] == "master"


# --- conditions -----------------------------------------------------------------------------------


def test_condition_names_instances_and_keys_that_somebody_changed() -> None:
    """Changes metadata of two pods by hand: a harmless condition names instances, keys and values.

    The pods are Ready, and the TApp is not Degraded.
    """
    world = tapp_with_role(replicas=3)
    write_by_hand(world, 0, labels={"role": "master"})
    write_by_hand(world, 2, labels={"role": None}, annotations={"note": "n" * 500})
    status = world.sync()["status"]
    found = condition(status, "MetadataEdited")
    assert found is not None
    for words in (
        "instance 0: label 'role' is 'master' (template: 'replica')",
        "instance 2: label 'role' was removed (template: 'replica')",
        "instance 2: annotation 'note' is 'a text with the digest",
    ):
        assert words in found["message"]
    assert "MetadataEdited" in HARMLESS
    assert world.writes == []
    assert set(world.decisions().values()) == {"Keep/UpToDate"}
    write_by_hand(world, 0, labels={"role": "replica"})
    write_by_hand(world, 2, labels={"role": "replica"}, annotations={"note": "first"})
    assert condition(world.sync()["status"], "MetadataEdited") is None


def test_no_condition_is_set_for_keys_that_others_have_added() -> None:
    world = write_by_hand(
        tapp_with_role(), labels={"topology.kubernetes.io/zone": "a"}, annotations={"cni": "x"}
    )
    assert condition(world.sync()["status"], "MetadataEdited") is None
    world.change(template=template_with_role("nginx:2")).settle()
    assert world.pod(0)["metadata"]["labels"]["topology.kubernetes.io/zone"] == "a"
