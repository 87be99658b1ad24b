"""Tests revisions of templates: what changes them, what does not, and values that must never
change.
"""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapp.declared.revision import revisions
from tests.builders import Document, tapp, template
from tests.unit.world import World, settled


def full(body: Document) -> str:
    """Returns the revision of the complete template."""
    return revisions(body)[0]


def uniq(body: Document) -> str:
    """Returns the second revision: that of the spec without the images of containers that run.

    If it is the same for two templates, an update in place is possible.
    """
    return revisions(body)[1]


SIDECAR = {"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}
RICH = template(
    labels={"app": "web", "tier": "front"},
    annotations={"note": "x"},
    container={
        "env": [{"name": "A", "value": "1"}],
        "ports": [{"containerPort": 80}],
        "resources": {
            "requests": {"cpu": "500m", "memory": "1Gi"},
            "limits": {"cpu": "2", "memory": "1536Mi"},
        },
    },
    initContainers=[{"name": "init", "image": "init:1"}, SIDECAR],
    volumes=[{"name": "tmp", "emptyDir": {}}, {"name": "big", "emptyDir": {"sizeLimit": "1Gi"}}],
    tolerations=[{"key": "gpu", "operator": "Exists"}],
    overhead={"cpu": "250m"},
)

# A change of one of these values would restart every pod of every user, so never adapt them.
FROZEN = [
    pytest.param(
        template(), "v1-0ed067190844f52acd26", "v1-b8c5c6feea6368647d7c", id="plain template"
    ),
    pytest.param(RICH, "v1-6e3f88daf6aba3d7650d", "v1-a3e795301f6c466c9c06", id="rich template"),
    pytest.param(
        {"spec": {"containers": [{"name": "a", "image": "b"}]}},
        "v1-177b98142b70b32e15b8",
        "v1-91d9cce57aacb7babfc3",
        id="minimal template",
    ),
    pytest.param(
        template(container={"env": [{"name": "U", "value": "ü€𝄞 <&>\u2028"}]}),
        "v1-01de34de6de3a67ac27d",
        "v1-89a36b7e4c5a134323ce",
        id="characters beyond ASCII",
    ),
]


@pytest.mark.parametrize(("body", "complete", "without_images"), FROZEN)
def test_revisions_of_known_templates_never_change(
    body: Document, complete: str, without_images: str
) -> None:
    assert revisions(body) == (complete, without_images)


@pytest.mark.parametrize(
    "body", [param.values[0] for param in FROZEN], ids=[str(param.id) for param in FROZEN]
)
def test_revision_is_a_valid_label_value_and_starts_with_its_version(body: Any) -> None:
    for revision in revisions(body):
        assert len(revision) <= 63
        assert revision.startswith("v1-")
        assert revision.replace("-", "").isalnum()


# --- equivalent templates -------------------------------------------------------------------------

SPELLINGS = [
    ("0.5", "500m", 0.5, ".5", "0.50", "500000u", "5e-1", "500000000n"),
    ("1", "1000m", 1, 1.0, "1.0", "1e0", "01"),
    ("1Gi", "1024Mi", "1048576Ki", 1073741824, "1073741824", "1.0Gi"),
    ("1.5Gi", "1536Mi"),
    ("2k", "2000", "2e3", "2E3", 2000),
    ("0", "0m", 0, "0Gi"),
    ("1M", "1000k", "1e6", "1000000"),
]


@pytest.mark.parametrize("spellings", SPELLINGS, ids=lambda items: str(items[0]))
def test_equal_quantities_have_the_same_revision(spellings: tuple[Any, ...]) -> None:
    def asking(value: Any) -> Document:
        return template(container={"resources": {"requests": {"memory": value}}})

    assert len({revisions(asking(value)) for value in spellings}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [("1", "1m"), ("1Gi", "1G"), ("1k", "1Ki"), ("0.5", "0.05"), ("1E", "1Ei"), ("1", "1.0001")],
)
def test_different_quantities_have_different_revisions(one: str, other: str) -> None:
    def asking(value: Any) -> Document:
        return template(container={"resources": {"limits": {"cpu": value}}})

    assert full(asking(one)) != full(asking(other))
    assert uniq(asking(one)) != uniq(asking(other))


def test_equal_quantities_of_volumes_and_overhead_have_the_same_revision() -> None:
    assert full(template(volumes=[{"name": "a", "emptyDir": {"sizeLimit": "1Gi"}}])) == full(
        template(volumes=[{"name": "a", "emptyDir": {"sizeLimit": "1024Mi"}}])
    )
    assert full(template(overhead={"cpu": "0.25"})) == full(template(overhead={"cpu": "250m"}))


def test_texts_that_look_like_quantities_have_different_revisions() -> None:
    def env(value: str) -> Document:
        return template(container={"env": [{"name": "CPU", "value": value}]})

    assert full(env("0.5")) != full(env("500m"))
    assert full(template(labels={"cpu": "1"})) != full(template(labels={"cpu": "1000m"}))


@pytest.mark.parametrize(
    "noise",
    [
        {"nodeSelector": None},
        {"nodeSelector": {}},
        {"initContainers": []},
        {"tolerations": []},
        {"volumes": None},
        {"imagePullSecrets": []},
        {"securityContext": {}},
        {"affinity": {}},
        {"hostNetwork": False},
        {"serviceAccountName": ""},
    ],
    ids=str,
)
def test_empty_field_of_the_spec_does_not_change_the_revision(noise: Document) -> None:
    assert revisions(template(**noise)) == revisions(template())


@pytest.mark.parametrize(
    "noise",
    [
        {"env": []},
        {"command": None},
        {"resources": {}},
        {"resources": {"requests": {}, "limits": None}},
        {"stdin": False},
        {"workingDir": ""},
        {"securityContext": {}},
        {"volumeMounts": []},
    ],
    ids=str,
)
def test_empty_field_of_a_container_does_not_change_the_revision(noise: Document) -> None:
    assert revisions(template(container=noise)) == revisions(template())


@pytest.mark.parametrize("field", ["initialDelaySeconds", "timeoutSeconds", "failureThreshold"])
def test_zero_in_a_probe_does_not_change_the_revision(field: str) -> None:
    def probe(**more: int) -> Document:
        return template(container={"livenessProbe": {"tcpSocket": {"port": 80}, **more}})

    assert revisions(probe(**{field: 0})) == revisions(probe())


def test_empty_objects_with_a_meaning_change_the_revision() -> None:
    """Adds `emptyDir: {}`, which is a kind of volume, and `labelSelector: {}`, which selects
    everything.
    """
    named = template(volumes=[{"name": "a"}])
    assert full(named) != full(template(volumes=[{"name": "a", "emptyDir": {}}]))

    def spread(**more: Document) -> Document:
        return template(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "zone", **more}])

    assert full(spread()) != full(spread(labelSelector={}))


def test_false_and_zero_with_a_meaning_change_the_revision() -> None:
    assert full(template(automountServiceAccountToken=False)) != full(template())
    assert full(template(terminationGracePeriodSeconds=0)) != full(template())


def test_empty_metadata_does_not_change_the_revision() -> None:
    bare = {"spec": template()["spec"]}
    spellings: list[Any] = [None, {}, {"labels": None}, {"labels": {}, "annotations": {}}]
    for metadata in spellings:
        assert revisions({**bare, "metadata": metadata}) == revisions(bare)


def reformatted(draw: st.DrawFn, value: Any, key: str = "") -> Any:
    """Returns an equivalent template with another order of keys, other quantities and empty fields.

    `key` is the key of `value` in its parent.
    """
    if isinstance(value, dict):
        if key in ("requests", "limits", "overhead"):
            return {
                name: draw(st.sampled_from(_equal_quantities(item))) for name, item in value.items()
            }
        items = draw(st.permutations(list(value.items())))
        silent: list[Document] = [{}, {"futureField": None}, {"args": []}, {"env": None}]
        noise = draw(st.sampled_from(silent))
        known: Document = {name: reformatted(draw, item, name) for name, item in items}
        if key in ("labels", "annotations", "emptyDir"):
            return known
        return {**{name: item for name, item in noise.items() if name not in known}, **known}
    if isinstance(value, list):
        return [reformatted(draw, item) for item in value]
    return value


def _equal_quantities(amount: str) -> list[Any]:
    return next((list(group) for group in SPELLINGS if amount in group), [amount])


@st.composite
def equivalent_templates(draw: st.DrawFn) -> Document:
    """Draws a template that is equivalent to RICH: the API server would store the same pod."""
    result: Document = reformatted(draw, RICH)
    return result


@given(equivalent_templates())
def test_equivalent_templates_have_the_same_revision(body: Document) -> None:
    assert revisions(body) == revisions(RICH)


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Returns the paths of all values in a document that are neither objects nor lists; `path` is
    put before each.
    """
    items: Any = value.items() if isinstance(value, dict) else enumerate(value)
    result: list[tuple[str | int, ...]] = []
    for key, item in items:
        nested = isinstance(item, dict | list)
        result += leaves(item, (*path, key)) if nested else [(*path, key)]
    return result


@pytest.mark.parametrize("path", leaves(RICH), ids=lambda path: ".".join(map(str, path)))
def test_change_of_each_value_changes_the_revision(path: tuple[str | int, ...]) -> None:
    changed: Any = deepcopy(RICH)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    value = inner[path[-1]]
    inner[path[-1]] = "3" if path[-1] in ("cpu", "memory", "sizeLimit") else f"{value}0"
    assert full(changed) != full(RICH)
    in_place = path[0] == "metadata" or (path[-1] == "image" and path[2:4] != (0,) and _runs(path))
    assert (uniq(changed) == uniq(RICH)) is in_place


def _runs(path: tuple[str | int, ...]) -> bool:
    return path[1] == "containers" or path[2] == 1  # the native sidecar


def test_removed_fields_and_reordered_containers_change_the_revision() -> None:
    two = template(sidecars=[{"name": "b", "image": "b:1"}])
    turned = deepcopy(two)
    turned["spec"]["containers"].reverse()
    assert full(two) != full(turned)
    without = deepcopy(RICH)
    del without["spec"]["tolerations"]
    assert full(without) != full(RICH)


# --- labels that a controller wrote into the template ---------------------------------------------


def test_labels_that_the_old_controller_wrote_do_not_change_the_revision() -> None:
    written = template(
        labels={
            "app": "web",
            "tapp_template_hash_key": "3519815671",
            "tapp_uniq_hash_key": "1129474381",
            "tapp_instance_key": "0",
        }
    )
    assert revisions(written) == revisions(template())
    world = World(tapp(template=written)).settle()
    labels = world.pod(0)["metadata"]["labels"]
    assert labels["tapp_template_hash_key"] == full(template())


@given(equivalent_templates())
def test_equivalent_templates_cause_no_update(body: Document) -> None:
    world = WORLD
    parent = {**world.parent, "spec": {**world.parent["spec"], "template": body}}
    answer = world.hook.answer("/plan", {**world.request(), "parent": parent})
    assert [item["reason"] for item in answer["instances"]] == ["UpToDate"] * 2


WORLD = settled(replicas=2, template=json.loads(json.dumps(RICH)))
