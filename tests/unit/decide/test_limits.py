"""A pod never goes, and is never updated, for what the API server or the kubelet would refuse."""

from collections.abc import Callable
from typing import Any

import pytest

from simulator.api.admission import lean_pods
from simulator.api.apply import LAST_APPLIED
from tapp.kube.images import is_reference
from tests.builders import Document, claim_template, tapp, template
from tests.limits import IMAGES, LIMITS, OTHER
from tests.unit.decide.test_unmade import BLOCKED, blocked, kept
from tests.unit.world import World, condition, settled

MOST = 262_144
EVERYBODY = {"maxUnavailable": "100%"}


def pooled(made: Document) -> Document:
    """The spec in which every instance runs `made`, a template of the pool."""
    return {
        "templatePool": {"new": made},
        "defaultTemplateName": "new",
        "updateStrategy": {"template": "default", **EVERYBODY},
    }


# --- one value ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LIMITS)
def test_pods_stay_for_a_value_beyond_a_limit(name: str) -> None:
    """Of the default template as of one of the pool, where all would go at once."""
    made, accepted, refused, where = LIMITS[name]
    world = settled(replicas=2)
    before = world.uids()
    world.change(template=made(refused))
    assert kept(world) == BLOCKED
    assert f"template 'default': {where}" in blocked(world)
    world.change(template=template(), **pooled(made(refused)))
    assert kept(world) == BLOCKED
    assert f"template 'new': {where}" in blocked(world)
    assert world.settle().uids() == before
    world.change(**pooled(made(accepted)))
    assert not kept(world) & BLOCKED


@pytest.mark.parametrize("name", LIMITS)
def test_no_pod_is_made_for_a_value_beyond_a_limit(name: str) -> None:
    """A new TApp says at once what is wrong, instead of being refused at each sync."""
    made, _, refused, where = LIMITS[name]
    world = World(tapp(template=made(refused)))
    if name == "no image":  # admission may fill it in
        assert kept(world) == {"Create/NoPod"}
        return
    assert kept(world) == {"Absent/Blocked"}
    assert where in blocked(world)


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("labels", {"app": "$(tapp.values.v)"}, "metadata.labels.app becomes"),
        ("annotations", {"note": "$(tapp.values.v)"}, ""),
        ("hostname", "$(tapp.values.v)", "spec.hostname is"),
        ("image", "$(tapp.values.v)", "spec.containers[0].image is"),
        ("port", "$(tapp.values.v)", "spec.containers[0].ports[0].name is"),
    ],
)
def test_a_value_that_a_placeholder_makes_too_long_blocks_its_instance(
    field: str, value: Any, word: str
) -> None:
    """The other instances are updated; the CRD cannot know what a placeholder becomes."""
    options: Document = {field: value}
    if field == "port":
        options = {"container": {"ports": [{"name": value, "containerPort": 80}]}}
    world = settled(replicas=2)
    world.change(
        template=template(**{"image": "nginx:2", **options}),
        updateStrategy=EVERYBODY,
        defaultValues={"v": "short"},
        values={"1": {"v": "L" * 300}},
    )
    decisions = world.decisions()
    assert decisions[0] in {"Recreate/TemplateChanged", "UpdateInPlace/TemplateChanged"}
    assert (decisions[1] == "Keep/Blocked") is bool(word)
    assert word in blocked(world)


def test_a_missing_image_that_admission_fills_in_is_no_mistake() -> None:
    """A webhook knows the image: the TApp is made, and rolls."""

    def filled(_: str, pod: Document) -> Document:
        spec = pod["spec"]
        containers = [{"image": "web:1", **container} for container in spec["containers"]]
        return {**pod, "spec": {**spec, "containers": containers}}

    made = template(container={"command": ["x"]})
    del made["spec"]["containers"][0]["image"]
    world = World(tapp(template=made), policies=(filled,)).settle()
    assert blocked(world) == ""
    changed = template(container={"command": ["y"]})
    del changed["spec"]["containers"][0]["image"]
    world.change(template=changed)
    assert kept(world) == {"Recreate/TemplateChanged"}


# --- images ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_that_is_no_reference_stops_no_container(name: str) -> None:
    """In place, in a sidecar, in an init container, in an image volume, by a placeholder."""
    accepted, refused = IMAGES[name]
    assert is_reference(accepted)
    container = {"command": ["run"]}
    made: dict[str, Callable[[str], Document]] = {
        "spec.containers[0].image": template,
        "spec.containers[1].image": lambda image: template(sidecars=[{**OTHER, "image": image}]),
        "spec.initContainers[0].image": lambda image: template(
            container=container, initContainers=[{**OTHER, "image": image}]
        ),
        "spec.volumes[0].image.reference": lambda image: template(
            container=container, volumes=[{"name": "files", "image": {"reference": image}}]
        ),
    }
    for where, with_image in made.items():
        world = (
            settled(replicas=2, template=template(sidecars=[OTHER]))
            if "[1]" in where
            else settled()
        )
        before = world.pods
        world.change(template=with_image(refused))
        assert kept(world) == BLOCKED
        message = blocked(world)
        assert f"{where} is '{refused[:20]}" in message
        assert "it is no image reference" in message
        assert world.settle().pods == before
        world.change(template=with_image(accepted))
        assert not kept(world) & BLOCKED
    world = settled().change(template=template("$(tapp.values.i)"), defaultValues={"i": refused})
    assert kept(world) == BLOCKED


def test_a_wrong_image_does_not_keep_other_instances_waiting() -> None:
    """Only the instances of that template are blocked, and a repair goes on."""
    world = settled(replicas=2, templatePool={"canary": template()}, templates={"1": "canary"})
    world.change(template=template("nginx:2"), templatePool={"canary": template("Web:2")})
    assert world.decisions() == {0: "UpdateInPlace/TemplateChanged", 1: "Keep/Blocked"}
    assert "template 'canary': spec.containers[0].image is 'Web:2'" in blocked(world)
    world.change(templatePool={"canary": template("web:2")})
    assert "Blocked" not in world.decisions()[1]


# --- the size of annotations ----------------------------------------------------------------------


def large(length: int, letter: str = "x", **options: Any) -> Document:
    """A template with a variable of so many characters."""
    env = [{"name": "LARGE", "value": letter * length}]
    return template("nginx:2", container={"env": env, "command": ["run"]}, **options)


def annotation_bytes(pod: Document) -> int:
    """Bytes of a pod's annotations as the API server counts them."""
    found = pod["metadata"]["annotations"]
    return sum(len(key.encode()) + len(text.encode()) for key, text in found.items())


def largest(letter: str, **spec: Any) -> int:
    """The length of the variable with which a pod's annotations are as large as they may be."""
    each = len(letter.encode()) if letter not in "<>&" else 6
    world = World(tapp(**spec, template=large(1_000, letter))).settle()
    (pod,) = world.pods.values()
    assert LAST_APPLIED in pod["metadata"]["annotations"]
    return 1_000 + (MOST - annotation_bytes(pod)) // each


SIZED: dict[str, tuple[str, Document]] = {
    "plain": ("x", {}),
    "with letters that Go writes longer": ("<", {}),
    "with letters of two bytes": ("é", {}),
    "with claims": ("x", {"volumeClaimTemplates": [claim_template(), claim_template("logs")]}),
    "with a host name": ("x", {"serviceName": "all"}),
    "moved from lost nodes": ("x", {"forceDeletePod": True}),
}


@pytest.mark.parametrize("name", SIZED)
def test_pods_stay_for_annotations_beyond_their_limit(name: str) -> None:
    """Metacontroller's copy of the new pod counts, to the byte; in the pool as well."""
    letter, spec = SIZED[name]
    length = largest(letter, **spec)
    world = settled(replicas=1, **spec)
    before = world.uids()
    world.change(**pooled(large(length + 1, letter)))
    assert kept(world) == BLOCKED
    message = blocked(world)
    assert "template 'new': the annotations of a pod would have" in message
    assert f"accepts at most {MOST}" in message
    assert world.settle().uids() == before
    world.change(**pooled(large(length, letter))).settle()
    assert blocked(world) == ""
    (pod,) = world.pods.values()
    assert MOST - 6 < annotation_bytes(pod) <= MOST
    assert world.uids() != before


def test_annotations_that_grow_in_place_stay_within_the_limit() -> None:
    """They are there twice, and the write would be refused for ever."""
    world = settled()
    before = world.pods
    world.change(template=template(annotations={"note": "n" * 140_000}))
    assert kept(world) == BLOCKED
    assert "make the annotations of the template shorter" in blocked(world)
    assert world.settle().pods == before
    world.change(template=template(annotations={"note": "n" * 120_000})).settle()
    assert blocked(world) == ""
    assert len(world.pod(0)["metadata"]["annotations"]["note"]) == 120_000


def lean(**spec: Any) -> World:
    """A TApp whose pods the policy `tapp-lean-pods` has made lean."""
    return World(tapp(**spec), policies=(lean_pods,)).settle()


def test_a_cut_copy_does_not_count() -> None:
    """Under the policy a template may be larger: the TApp rolls, and makes lost pods anew."""
    world = lean(replicas=2)
    world.change(**pooled(large(270_000)))
    assert kept(world) == {"Recreate/TemplateChanged"}
    world.settle()
    assert blocked(world) == ""
    world.pods.pop("web-1")
    assert world.decisions() == {0: "Keep/UpToDate", 1: "Create/NoPod"}


def test_a_copy_that_the_policy_cannot_cut_counts() -> None:
    """The API server gives the policy's expression only so much work."""
    world = lean()
    world.change(template=large(300_000))
    assert kept(world) == BLOCKED
    assert blocked(world).endswith("for example by a ConfigMap")
    world.change(template=large(295_000))
    assert not kept(world) & BLOCKED


def test_one_lean_pod_shows_that_copies_are_cut() -> None:
    """The policy came under running pods: who deletes one of them shows the service."""
    world = settled(replicas=2)
    world.policies = (lean_pods,)
    world.change(**pooled(large(270_000)))
    assert kept(world) == BLOCKED
    assert "install the admission policy tapp-lean-pods" in blocked(world)
    world.pods.pop("web-1")
    assert world.decisions() == {0: "Keep/Blocked", 1: "Create/NoPod"}
    world.sync()
    world.modify(
        1, lambda pod: {**pod, "metadata": {**pod["metadata"], "creationTimestamp": LATER}}
    )
    assert "Blocked" not in world.decisions()[0]


LATER = "2099-01-01T00:00:00Z"


def test_lean_pods_show_nothing_while_a_pod_does_not_come_to_be() -> None:
    """The policy was removed: the pod that is refused keeps the others from going."""
    world = lean(replicas=2, template=large(270_000))
    world.pods.pop("web-1")
    world.parent["status"]["notCreated"] = {"2020-01-01T00:00:00Z": "1"}
    world.change(template=large(280_000), updateStrategy=EVERYBODY)
    assert world.decisions() == {0: "Keep/Blocked", 1: "Create/NoPod"}


def test_a_new_tapp_with_a_large_template_is_tried_and_then_named() -> None:
    """Nothing can be lost, and only the API server knows whether admission cuts the copy."""
    world = World(tapp(template=large(270_000)))
    assert kept(world) == {"Create/NoPod"}
    world.sync()
    world.pods.clear()
    world.sync()
    world.pods.clear()
    assert "the annotations of a pod would have" in blocked(world)


# --- names, claims, Services ----------------------------------------------------------------------


def named(name: str, **spec: Any) -> Document:
    """A TApp of this name."""
    parent = tapp(**spec)
    return {**parent, "metadata": {**parent["metadata"], "name": name}}


def test_a_pod_whose_name_is_too_long_is_not_made() -> None:
    """Instance 9 has a name of 253 characters, instance 10 one of 254."""
    world = World(named("t" * 251, replicas=11))
    decisions = world.decisions()
    assert decisions[9] == "Create/NoPod"
    assert decisions[10] == "Absent/Blocked"
    assert "254 characters" in blocked(world)


def test_a_claim_whose_name_is_too_long_keeps_the_pod() -> None:
    """`CLAIM-TAPP-NUMBER` of 254 characters cannot be made; an instance with its claim goes on."""
    world = World(named("t" * 188)).settle()
    longer = claim_template("c" * 62)
    world.change(
        volumeClaimTemplates=[longer], template=template("nginx:2", container={"command": ["x"]})
    )
    assert "Recreate/TemplateChanged" in kept(world)
    world.change(volumeClaimTemplates=[claim_template("c" * 63)])
    assert kept(world) == BLOCKED
    assert f"claim template '{'c' * 63}': its claim would be named" in blocked(world)


WRONG_CLAIMS: dict[str, tuple[Document, str]] = {
    "a label": ({"labels": {"a": "b" * 64}}, "metadata.labels['a'] is"),
    "a label's key": ({"labels": {"a b": "c"}}, "metadata.labels has the key 'a b'"),
    "an annotation's key": ({"annotations": {"a b": ""}}, "metadata.annotations has the key 'a b'"),
    "annotations": ({"annotations": {"a": "b" * 140_000}}, "its annotations would have"),
    "an own label": ({"labels": {"a": "$(tapp.values.v)"}}, "metadata.labels.a becomes"),
}


@pytest.mark.parametrize("name", WRONG_CLAIMS)
def test_a_claim_that_would_be_refused_keeps_the_pod(name: str) -> None:
    """The next pod would wait for that claim for ever."""
    metadata, words = WRONG_CLAIMS[name]
    claim = claim_template()
    claim["metadata"] |= metadata
    world = settled(replicas=1)
    before = world.uids()
    world.change(
        template=template("nginx:2", container={"command": ["x"]}),
        volumeClaimTemplates=[claim],
        defaultValues={"v": "b" * 64} if "own" in name else None,
    )
    assert kept(world) == BLOCKED
    assert words in blocked(world)
    assert world.settle().uids() == before
    world.change(volumeClaimTemplates=[claim_template()], defaultValues=None).settle()
    assert blocked(world) == ""


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"labels": {"a": "b" * 64}}, "metadata.labels['a'] is"),
        ({"annotations": {"a b": ""}}, "metadata.annotations has the key 'a b'"),
        ({"annotations": {"a": "<" * 40_000}}, "its annotations would have"),
    ],
)
def test_a_service_that_would_be_refused_is_said_at_once(metadata: Document, words: str) -> None:
    """It is not asked for again and again, and the one that is there stays."""
    service: Document = {"spec": {"ports": [{"port": 80}]}}
    world = World(tapp(serviceTemplate=service), exposing=True).settle()
    before = world.services
    world.change(serviceTemplate={**service, "metadata": metadata})
    found = condition(world.sync(), "ServicesNotCreated")
    assert found is not None
    assert words in found["message"]
    assert world.services == before
