"""Labels and annotations of pods that somebody else has changed, and updates in place.

An update writes only the keys whose value in the template has changed since the pod's revision.
"""

from typing import Any

import pytest

from simulator.objects.objects import with_meta
from tests.builders import Document, tapp, template
from tests.conditions import HARMLESS
from tests.unit.world import World, condition

HASH = "tapp_template_hash_key"
ROLE = {"app": "web", "role": "replica"}
NOTE = {"note": "first"}


def made(image: str = "nginx:1", **parts: Any) -> Document:
    """A template with a label `role` and an annotation `note`, unless the case says otherwise."""
    return template(image, **{"labels": ROLE, "annotations": NOTE, **parts})


def life(history: bool = True, **spec: Any) -> World:
    """A TApp of one instance that runs such a template."""
    return World(tapp(**{"template": made(), **spec}), history=history).settle()


def edit(world: World, id: int = 0, **parts: dict[str, str | None]) -> World:
    """Somebody writes labels or annotations of a pod (None removes one), and the service looks."""

    def edited(pod: Document) -> Document:
        for part, entries in parts.items():
            found = {**pod["metadata"][part], **entries}
            kept = {key: text for key, text in found.items() if text is not None}
            pod = with_meta(pod, **{part: kept})
        return by_kubectl(pod, parts)

    world.modify(id, edited)
    world.sync()
    world.sync()
    return world


def by_kubectl(pod: Document, parts: dict[str, dict[str, str | None]]) -> Document:
    """The API server notes who wrote what last."""
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


def has(world: World, part: str, id: int = 0) -> dict[str, str]:
    """The author's labels or annotations of a pod."""
    found = world.pod(id)["metadata"][part]
    return {key: text for key, text in found.items() if key in {"app", "role", "note", "new"}}


NEW: dict[str, Document] = {
    "another image": made("nginx:2"),
    "a default written out": made(restartPolicy="Always"),
    "another annotation": made(annotations={**NOTE, "other": "x"}),
}
"""Templates that change neither the label nor the annotation."""


@pytest.mark.parametrize("name", NEW)
def test_keys_that_somebody_changed_stay_in_an_update_in_place(name: str) -> None:
    """The program that is the master keeps its traffic, whatever else changes."""
    world = edit(life(), labels={"role": "master"}, annotations={"note": "mine"})
    uids = world.uids()
    world.change(template=NEW[name]).settle()
    assert world.uids() == uids
    assert set(world.decisions().values()) == {"Keep/UpToDate"}
    assert has(world, "labels") == {"app": "web", "role": "master"}
    assert has(world, "annotations") == {"note": "mine"}
    world.sync()
    assert world.writes == []


@pytest.mark.parametrize("name", NEW)
def test_keys_that_somebody_removed_stay_away(name: str) -> None:
    """Who takes a pod out of a Service by removing its label means that."""
    world = edit(life(), labels={"role": None}, annotations={"note": None})
    world.change(template=NEW[name]).settle()
    assert has(world, "labels") == {"app": "web"}
    assert has(world, "annotations") == {}


CHANGED: dict[str, tuple[dict[str, str | None], dict[str, str], dict[str, str]]] = {
    "the template changes what somebody changed": (
        {"role": "master"}, {**ROLE, "role": "standby"}, {"app": "web", "role": "standby"},
    ),
    "the template changes what somebody removed": (
        {"role": None}, {**ROLE, "role": "standby"}, {"app": "web", "role": "standby"},
    ),
    "the template removes what somebody changed": (
        {"role": "master"}, {"app": "web"}, {"app": "web"},
    ),
    "the template adds what somebody set": (
        {"new": "hand"}, {**ROLE, "new": "template"}, {**ROLE, "new": "template"},
    ),
    "the template changes another key": (
        {"role": "master"}, {**ROLE, "app": "shop"}, {"app": "shop", "role": "master"},
    ),
    "the template removes another key": (
        {"role": "master"}, {"role": "replica"}, {"role": "master"},
    ),
    "somebody added a key": (
        {"new": "hand"}, {**ROLE, "app": "shop"}, {**ROLE, "app": "shop", "new": "hand"},
    ),
}  # fmt: skip
"""Labels that somebody writes, the labels of the next template, and what the pod has then."""


@pytest.mark.parametrize("part", ["labels", "annotations"])
@pytest.mark.parametrize("name", CHANGED)
def test_only_keys_that_the_template_changes_are_written(name: str, part: str) -> None:
    """A key that the template changes is written, whatever somebody made of it."""
    by_hand, wanted, expected = CHANGED[name]
    world = life(template=template("nginx:1", **{part: ROLE}))
    edit(world, **{part: by_hand})
    world.change(template=template("nginx:1", **{part: wanted})).settle()
    assert set(world.decisions().values()) == {"Keep/UpToDate"}
    assert has(world, part) == {
        **({"app": "web"} if part == "annotations" else {}),
        **expected,
    } or (has(world, part) == expected)


def test_a_rollback_writes_only_what_both_templates_differ_in() -> None:
    world = edit(life(), labels={"role": "master"})
    world.change(template=made("nginx:2", labels={**ROLE, "app": "shop"})).settle()
    assert has(world, "labels") == {"app": "shop", "role": "master"}
    world.change(template=made()).settle()
    assert has(world, "labels") == {"app": "web", "role": "master"}


def test_labels_of_our_own_are_always_written() -> None:
    """By them the service knows what a pod runs."""
    world = life()
    revision = world.pod(0)["metadata"]["labels"][HASH]
    edit(world, labels={"apps.kubernetes.io/pod-index": "7"})
    world.change(template=made("nginx:2")).settle()
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
    ids=["rolling", "forced", "resources are left to others"],
)
def test_every_kind_of_update_in_place_leaves_them(strategy: Document) -> None:
    world = edit(life(updateStrategy=strategy), labels={"role": "master"})
    world.change(template=made("nginx:2")).settle()
    assert has(world, "labels")["role"] == "master"


def test_a_restart_in_place_leaves_them() -> None:
    """Asked for by the pod's annotation, at the revision that it has."""
    world = edit(life(), labels={"role": "master"})
    world.modify(0, with_digest)
    edit(world, annotations={"apps.tkestack.io/restart-instance": "now"})
    assert world.container(0)["image"] != "nginx:1"
    assert has(world, "labels")["role"] == "master"


def with_digest(pod: Document) -> Document:
    """The kubelet says which image runs."""
    (status,) = pod["status"]["containerStatuses"]
    name = pod["spec"]["containers"][0]["image"].partition(":")[0]
    status = {**status, "imageID": f"docker.io/library/{name}@sha256:{'a' * 64}"}
    return {**pod, "status": {**pod["status"], "containerStatuses": [status]}}


def test_a_container_does_not_restart_for_a_label_that_stays() -> None:
    """It read `master` when it started, and `master` is what the pod keeps."""
    field = {"fieldRef": {"fieldPath": "metadata.labels['role']"}}
    reading = {"env": [{"name": "ROLE", "valueFrom": field}]}
    world = edit(life(template=made(container=reading)), labels={"role": "master"})
    image = world.container(0)["image"]
    world.change(template=made(container=reading, annotations={"note": "second"})).settle()
    assert has(world, "labels")["role"] == "master"
    assert world.container(0)["image"] == image


def test_own_values_are_compared_as_each_instance_has_them() -> None:
    labels = {"app": "web", "role": "$(tapp.values.role)"}
    values = {"0": {"role": "a"}, "1": {"role": "b"}}
    strategy = {"maxUnavailable": "100%"}
    spec = {"replicas": 2, "values": values, "updateStrategy": strategy}
    world = life(template=made(labels=labels), **spec)
    edit(world, 0, labels={"role": "master"})
    edit(world, 1, labels={"role": "master"})
    world.change(values={"0": {"role": "a"}, "1": {"role": "c"}}).settle()
    world.change(template=made("nginx:2", labels=labels)).settle()
    assert [has(world, "labels", id)["role"] for id in (0, 1)] == ["master", "c"]


# --- without a record -----------------------------------------------------------------------------


def test_without_a_record_managed_fields_tell_what_somebody_changed() -> None:
    """Metacontroller's copy has the edit by then, and the API server knows whose it is."""
    world = edit(life(history=False), labels={"role": "master"})
    world.change(template=made("nginx:2", labels={**ROLE, "app": "shop"})).settle()
    assert has(world, "labels") == {"app": "shop", "role": "master"}


def test_without_a_record_a_key_that_somebody_set_stays_whatever_the_template_says() -> None:
    """Nobody knows whether its template has changed: it stays until there is a new pod."""
    world = edit(life(history=False), labels={"role": "master"})
    world.change(template=made("nginx:2", labels={**ROLE, "role": "standby"})).settle()
    assert has(world, "labels")["role"] == "master"
    assert condition(world.sync()["status"], "MetadataEdited") is not None


def test_without_a_record_and_managed_fields_the_template_is_written() -> None:
    """As of lean pods of a TApp without a history: what is not known cannot be kept."""
    world = edit(life(history=False), labels={"role": "master"})
    world.modify(0, lambda pod: with_meta(pod, managedFields=[]))
    world.change(template=made("nginx:2", labels={**ROLE, "app": "shop"})).settle()
    assert has(world, "labels") == {**ROLE, "app": "shop"}


def test_without_a_record_an_edit_that_nobody_has_seen_yet_stays() -> None:
    """Metacontroller's copy still has what the template said."""
    world = life(history=False)
    labels = {**world.pod(0)["metadata"]["labels"], "role": "master"}
    world.modify(0, lambda pod: with_meta(pod, labels=labels))
    world.change(template=made("nginx:2")).settle()
    assert has(world, "labels")["role"] == "master"


# --- what is said ---------------------------------------------------------------------------------


def test_a_condition_names_instances_and_keys() -> None:
    """Nothing is wrong with these pods: they are Ready, and the TApp is not Degraded."""
    world = life(replicas=3)
    edit(world, 0, labels={"role": "master"})
    edit(world, 2, labels={"role": None}, annotations={"note": "n" * 500})
    status = world.sync()["status"]
    found = condition(status, "MetadataEdited")
    assert found is not None
    for words in (
        "instances 0: label 'role' is 'master' (template: 'replica')",
        "instances 2: label 'role' was removed (template: 'replica')",
        "instances 2: annotation 'note' is 'a text with the digest",
    ):
        assert words in found["message"]
    assert "MetadataEdited" in HARMLESS
    assert world.writes == []
    assert set(world.decisions().values()) == {"Keep/UpToDate"}
    edit(world, 0, labels={"role": "replica"})
    edit(world, 2, labels={"role": "replica"}, annotations={"note": "first"})
    assert condition(world.sync()["status"], "MetadataEdited") is None


def test_nothing_is_said_of_what_others_have_added() -> None:
    world = edit(life(), labels={"topology.kubernetes.io/zone": "a"}, annotations={"cni": "x"})
    assert condition(world.sync()["status"], "MetadataEdited") is None
    world.change(template=made("nginx:2")).settle()
    assert world.pod(0)["metadata"]["labels"]["topology.kubernetes.io/zone"] == "a"
