"""Tests that pods stay as they are if the API server or the kubelet would refuse their new
template.
"""

from collections.abc import Callable
from typing import Any

import pytest

from simulator.api.admission import lean_pods
from simulator.api.apply import LAST_APPLIED
from tapp.kube.images import is_reference
from tests.builders import Document, claim_template, tapp, template
from tests.limits import IMAGES, LIMITS, OTHER
from tests.unit.decide.blocking import BLOCKED, all_decisions, blocked_message
from tests.unit.world import World, condition, settled

MOST = 262_144
ALL_AT_ONCE = {"maxUnavailable": "100%"}


def run_by_all(made: Document) -> Document:
    """Returns fields of a spec with which every instance runs the template `made` from the template
    pool.
    """
    return {
        "templatePool": {"new": made},
        "defaultTemplateName": "new",
        "updateStrategy": {"template": "default", **ALL_AT_ONCE},
    }


# --- limits of single fields ----------------------------------------------------------------------


@pytest.mark.parametrize("name", LIMITS)
def test_pods_stay_if_a_field_of_their_template_exceeds_a_limit(name: str) -> None:
    """Edits a template to a value beyond a limit of the API server: the update is blocked, and pods
    stay.

    This holds for the default template, and for a pool template that would replace all pods at
    once.
    """
    made, accepted, refused, where = LIMITS[name]
    world = settled(replicas=2)
    before = world.uids()
    world.change(template=made(refused))
    assert all_decisions(world) == BLOCKED
    assert f"template 'default': {where}" in blocked_message(world)
    world.change(template=template(), **run_by_all(made(refused)))
    assert all_decisions(world) == BLOCKED
    assert f"template 'new': {where}" in blocked_message(world)
    assert world.settle().uids() == before
    world.change(**run_by_all(made(accepted)))
    assert not all_decisions(world) & BLOCKED


@pytest.mark.parametrize("name", LIMITS)
def test_new_tapp_reports_a_field_beyond_its_limit_and_creates_no_pod(name: str) -> None:
    """Creates a TApp with a value beyond a limit: it gets a condition and no pod.

    Otherwise the API server would refuse the pods at every sync.
    """
    made, _, refused, where = LIMITS[name]
    world = World(tapp(template=made(refused)))
    if name == "no image":  # a webhook may add the image
        assert all_decisions(world) == {"Create/NoPod"}
        return
    assert all_decisions(world) == {"Absent/Blocked"}
    assert where in blocked_message(world)


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("labels", {"app": "$(tapp.values.v)"}, "metadata.labels.app becomes"),
        ("annotations", {"note": "$(tapp.values.v)"}, ""),
        ("hostname", "$(tapp.values.v)", "spec.hostname is"),
        ("image", "$(tapp.values.v)", "spec.containers[0].image is"),
        ("port", "$(tapp.values.v)", "spec.containers[0].ports[0].name is"),
    ],
    ids=["label", "annotation", "host name", "image", "port name"],
)
def test_placeholder_value_that_is_too_long_blocks_only_its_instance(
    field: str, value: Any, word: str
) -> None:
    """Instance 1 has a value that is too long for the field: only its update is blocked.

    The CRD cannot check this, because it does not know the filled-in text.
    """
    options: Document = {field: value}
    if field == "port":
        options = {"container": {"ports": [{"name": value, "containerPort": 80}]}}
    world = settled(replicas=2)
    world.change(
        template=template(**{"image": "nginx:2", **options}),
        updateStrategy=ALL_AT_ONCE,
        defaultValues={"v": "short"},
        values={"1": {"v": "L" * 300}},
    )
    decisions = world.decisions()
    assert decisions[0] in {"Recreate/TemplateChanged", "UpdateInPlace/TemplateChanged"}
    assert (decisions[1] == "Keep/Blocked") is bool(word)
    assert word in blocked_message(world)


def test_missing_image_is_accepted_if_a_webhook_adds_it() -> None:
    def filled(_: str, pod: Document) -> Document:
        spec = pod["spec"]
        containers = [{"image": "web:1", **container} for container in spec["containers"]]
        return {**pod, "spec": {**spec, "containers": containers}}

    made = template(container={"command": ["x"]})
    del made["spec"]["containers"][0]["image"]
    world = World(tapp(template=made), policies=(filled,)).settle()
    assert blocked_message(world) == ""
    changed = template(container={"command": ["y"]})
    del changed["spec"]["containers"][0]["image"]
    world.change(template=changed)
    assert all_decisions(world) == {"Recreate/TemplateChanged"}


# --- images ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", IMAGES)
def test_update_to_an_invalid_image_reference_stops_no_container(name: str) -> None:
    """Edits an image to a text that no kubelet accepts: the update is blocked, and no pod changes.

    This holds for containers, sidecars, init containers, image volumes and placeholders.
    """
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
        assert all_decisions(world) == BLOCKED
        message = blocked_message(world)
        assert f"{where} is '{refused[:20]}" in message
        assert "it is not an image reference" in message
        assert world.settle().pods == before
        world.change(template=with_image(accepted))
        assert not all_decisions(world) & BLOCKED
    world = settled().change(template=template("$(tapp.values.i)"), defaultValues={"i": refused})
    assert all_decisions(world) == BLOCKED


def test_invalid_image_blocks_only_the_instances_of_its_template() -> None:
    world = settled(replicas=2, templatePool={"canary": template()}, templates={"1": "canary"})
    world.change(template=template("nginx:2"), templatePool={"canary": template("Web:2")})
    assert world.decisions() == {0: "UpdateInPlace/TemplateChanged", 1: "Keep/Blocked"}
    assert "template 'canary': spec.containers[0].image is 'Web:2'" in blocked_message(world)
    world.change(templatePool={"canary": template("web:2")})
    assert "Blocked" not in world.decisions()[1]


# --- the size of annotations ----------------------------------------------------------------------


def large_template(length: int, letter: str = "x", **options: Any) -> Document:
    """Returns a template with an environment variable whose value is `letter`, `length` times."""
    env = [{"name": "LARGE", "value": letter * length}]
    return template("nginx:2", container={"env": env, "command": ["run"]}, **options)


def annotation_bytes(pod: Document) -> int:
    """Returns the size of a pod's annotations in bytes, as the API server counts them."""
    found = pod["metadata"]["annotations"]
    return sum(len(key.encode()) + len(text.encode()) for key, text in found.items())


def largest_length(letter: str, **spec: Any) -> int:
    """Returns the length of the variable at which the annotations of a pod reach their limit.

    `letter` is the letter that is repeated; `spec` has further fields of the TApp's spec.
    """
    each = len(letter.encode()) if letter not in "<>&" else 6
    world = World(tapp(**spec, template=large_template(1_000, letter))).settle()
    (pod,) = world.pods.values()
    assert LAST_APPLIED in pod["metadata"]["annotations"]
    return 1_000 + (MOST - annotation_bytes(pod)) // each


SIZED: dict[str, tuple[str, Document]] = {
    "plain": ("x", {}),
    "characters that Go escapes": ("<", {}),
    "characters of two bytes": ("é", {}),
    "with claims": ("x", {"volumeClaimTemplates": [claim_template(), claim_template("logs")]}),
    "with a host name": ("x", {"serviceName": "all"}),
    "with forceDeletePod": ("x", {"forceDeletePod": True}),
}


@pytest.mark.parametrize("name", SIZED)
def test_pods_stay_if_the_annotations_of_a_new_pod_would_exceed_their_limit(name: str) -> None:
    """Edits a template so that the annotations of a new pod would have one byte too many: the
    update is blocked.

    Metacontroller's last-applied annotation, which contains the pod, counts.
    """
    letter, spec = SIZED[name]
    length = largest_length(letter, **spec)
    world = settled(replicas=1, **spec)
    before = world.uids()
    world.change(**run_by_all(large_template(length + 1, letter)))
    assert all_decisions(world) == BLOCKED
    message = blocked_message(world)
    assert "template 'new': the annotations of a pod would have" in message
    assert f"accepts at most {MOST}" in message
    assert world.settle().uids() == before
    world.change(**run_by_all(large_template(length, letter))).settle()
    assert blocked_message(world) == ""
    (pod,) = world.pods.values()
    assert MOST - 6 < annotation_bytes(pod) <= MOST
    assert world.uids() != before


def test_update_in_place_is_blocked_if_annotations_would_exceed_their_limit() -> None:
    """Adds a large annotation to a template: the update in place is blocked.

    Each annotation is stored twice, and the API server would refuse the write forever.
    """
    world = settled()
    before = world.pods
    world.change(template=template(annotations={"note": "n" * 140_000}))
    assert all_decisions(world) == BLOCKED
    assert "make the annotations of the template shorter" in blocked_message(world)
    assert world.settle().pods == before
    world.change(template=template(annotations={"note": "n" * 120_000})).settle()
    assert blocked_message(world) == ""
    assert len(world.pod(0)["metadata"]["annotations"]["note"]) == 120_000


def tapp_with_lean_pods(**spec: Any) -> World:
    """Returns a TApp from whose pods the admission policy `tapp-lean-pods` has removed managed
    fields and more.

    The policy also removes the spec from Metacontroller's last-applied annotation.
    """
    return World(tapp(**spec), policies=(lean_pods,)).settle()


def test_stripped_last_applied_annotation_does_not_count_for_the_limit() -> None:
    """Edits a template to 270 KB under the policy `tapp-lean-pods`: all pods are replaced, and a
    lost one, too.

    The policy shortens the last-applied annotation, so the annotations of the new pod fit.
    """
    world = tapp_with_lean_pods(replicas=2)
    world.change(**run_by_all(large_template(270_000)))
    assert all_decisions(world) == {"Recreate/TemplateChanged"}
    world.settle()
    assert blocked_message(world) == ""
    world.pods.pop("web-1")
    assert world.decisions() == {0: "Keep/UpToDate", 1: "Create/NoPod"}


def test_last_applied_annotation_counts_if_it_is_too_large_for_the_policy() -> None:
    """A template is so large that the policy cannot shorten the annotation: the update is blocked.

    The API server limits the cost of the policy's expression.
    """
    world = tapp_with_lean_pods()
    world.change(template=large_template(300_000))
    assert all_decisions(world) == BLOCKED
    assert blocked_message(world).endswith("for example by a ConfigMap")
    world.change(template=large_template(295_000))
    assert not all_decisions(world) & BLOCKED


def test_one_stripped_pod_shows_that_the_policy_is_installed() -> None:
    """Installs the policy later: the first pod that is created after that shows its effect, and the
    update begins.
    """
    world = settled(replicas=2)
    world.policies = (lean_pods,)
    world.change(**run_by_all(large_template(270_000)))
    assert all_decisions(world) == BLOCKED
    assert "install the admission policy tapp-lean-pods" in blocked_message(world)
    world.pods.pop("web-1")
    assert world.decisions() == {0: "Keep/Blocked", 1: "Create/NoPod"}
    world.sync()
    world.modify(
        1, lambda pod: {**pod, "metadata": {**pod["metadata"], "creationTimestamp": LATER}}
    )
    assert "Blocked" not in world.decisions()[0]


LATER = "2099-01-01T00:00:00Z"


def test_stripped_pods_do_not_count_while_a_pod_cannot_be_created() -> None:
    """Removes the policy: while the API server refuses to create one pod, no other pod is
    replaced.
    """
    world = tapp_with_lean_pods(replicas=2, template=large_template(270_000))
    world.pods.pop("web-1")
    world.parent["status"]["notCreated"] = {"2020-01-01T00:00:00Z": "1"}
    world.change(template=large_template(280_000), updateStrategy=ALL_AT_ONCE)
    assert world.decisions() == {0: "Keep/Blocked", 1: "Create/NoPod"}


def test_new_tapp_with_large_annotations_is_tried_before_the_condition_is_set() -> None:
    """Creates a TApp whose pods may have too large annotations: the condition follows after a
    refusal.

    Nothing can be lost, and only the API server knows whether a policy shortens the annotation.
    """
    world = World(tapp(template=large_template(270_000)))
    assert all_decisions(world) == {"Create/NoPod"}
    world.sync()
    world.pods.clear()
    world.sync()
    world.pods.clear()
    assert "the annotations of a pod would have" in blocked_message(world)


# --- names, claims, Services ----------------------------------------------------------------------


def tapp_named(name: str, **spec: Any) -> Document:
    """Returns a TApp with this name; `spec` has fields of its spec."""
    parent = tapp(**spec)
    return {**parent, "metadata": {**parent["metadata"], "name": name}}


def test_pod_whose_name_would_be_too_long_is_not_created() -> None:
    """The pod name of instance 9 has 253 characters, and that of instance 10 has 254: only instance
    9 gets a pod.
    """
    world = World(tapp_named("t" * 251, replicas=11))
    decisions = world.decisions()
    assert decisions[9] == "Create/NoPod"
    assert decisions[10] == "Absent/Blocked"
    assert "254 characters" in blocked_message(world)


def test_pod_is_not_replaced_if_the_name_of_its_new_claim_would_be_too_long() -> None:
    """Adds a claim template whose claim would have a too long name: the pod is not replaced."""
    world = World(tapp_named("t" * 188)).settle()
    longer = claim_template("c" * 62)
    world.change(
        volumeClaimTemplates=[longer], template=template("nginx:2", container={"command": ["x"]})
    )
    assert "Recreate/TemplateChanged" in all_decisions(world)
    world.change(volumeClaimTemplates=[claim_template("c" * 63)])
    assert all_decisions(world) == BLOCKED
    assert f"claim template '{'c' * 63}': its claim would be named" in blocked_message(world)


WRONG_CLAIMS: dict[str, tuple[Document, str]] = {
    "label value": ({"labels": {"a": "b" * 64}}, "metadata.labels['a'] is"),
    "label key": ({"labels": {"a b": "c"}}, "metadata.labels has the key 'a b'"),
    "annotation key": ({"annotations": {"a b": ""}}, "metadata.annotations has the key 'a b'"),
    "size of annotations": ({"annotations": {"a": "b" * 140_000}}, "its annotations would have"),
    "placeholder in a label": ({"labels": {"a": "$(tapp.values.v)"}}, "metadata.labels.a becomes"),
}


@pytest.mark.parametrize("name", WRONG_CLAIMS)
def test_pod_is_not_replaced_if_the_api_server_would_refuse_its_new_claim(name: str) -> None:
    """Adds an invalid claim template: the pod is not replaced, because the next one would wait for
    the claim forever.
    """
    metadata, words = WRONG_CLAIMS[name]
    claim = claim_template()
    claim["metadata"] |= metadata
    world = settled(replicas=1)
    before = world.uids()
    world.change(
        template=template("nginx:2", container={"command": ["x"]}),
        volumeClaimTemplates=[claim],
        defaultValues={"v": "b" * 64} if "placeholder" in name else None,
    )
    assert all_decisions(world) == BLOCKED
    assert words in blocked_message(world)
    assert world.settle().uids() == before
    world.change(volumeClaimTemplates=[claim_template()], defaultValues=None).settle()
    assert blocked_message(world) == ""


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"labels": {"a": "b" * 64}}, "metadata.labels['a'] is"),
        ({"annotations": {"a b": ""}}, "metadata.annotations has the key 'a b'"),
        ({"annotations": {"a": "<" * 40_000}}, "its annotations would have"),
    ],
    ids=["label value", "annotation key", "size of annotations"],
)
def test_invalid_service_template_sets_a_condition_and_keeps_the_existing_service(
    metadata: Document, words: str
) -> None:
    """Edits a Service template to invalid metadata: a condition says so, and the Service stays.

    Otherwise the API server would refuse the Service at every sync.
    """
    service: Document = {"spec": {"ports": [{"port": 80}]}}
    world = World(tapp(serviceTemplate=service), exposing=True).settle()
    before = world.services
    world.change(serviceTemplate={**service, "metadata": metadata})
    found = condition(world.sync(), "ServicesNotCreated")
    assert found is not None
    assert words in found["message"]
    assert world.services == before
