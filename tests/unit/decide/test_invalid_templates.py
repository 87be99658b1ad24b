"""Tests that pods stay if no pod can be created from their new template, and a condition says
why.
"""

import json
from typing import Any

import pytest

from simulator.api.apply import LAST_APPLIED
from simulator.objects.objects import with_meta
from tests.builders import Document, claim_template, tapp, template, terminating
from tests.invalid_templates import INVALID, VALID, template_with_mounts
from tests.unit.decide.blocking import BLOCKED, all_decisions, blocked_message
from tests.unit.world import World, settled


@pytest.mark.parametrize(("wrong", "words"), INVALID.values(), ids=INVALID)
def test_pods_stay_if_the_api_server_would_refuse_their_new_template(
    wrong: Document, words: str
) -> None:
    """Edits a template to an invalid one: the update is blocked, and pods stay until a valid
    template follows.
    """
    world = settled(replicas=2)
    before = world.uids()
    world.change(template=wrong)
    assert all_decisions(world) == BLOCKED
    assert words in blocked_message(world)
    assert world.settle().uids() == before
    world.change(template=template_with_mounts(image="nginx:3")).settle()
    assert blocked_message(world) == ""
    assert all(before[name] != uid for name, uid in world.uids().items())


@pytest.mark.parametrize("right", VALID.values(), ids=VALID)
def test_valid_templates_with_repeated_names_are_rolled_out(right: Document) -> None:
    """Rolls out templates that repeat names where Kubernetes allows that."""
    world = settled(replicas=2).change(template=right)
    assert "Recreate/TemplateChanged" in all_decisions(world)
    assert blocked_message(world) == ""


CLAIMS = [claim_template("data"), claim_template("logs")]


def with_claims() -> World:
    """Returns a TApp of three instances with two claims each, both mounted, after it has
    settled.
    """
    return settled(
        replicas=3, template=template_with_mounts("data", "logs"), volumeClaimTemplates=CLAIMS
    )


def test_removed_claim_template_that_is_still_mounted_sets_the_condition() -> None:
    """Removes a claim template that the template mounts: a condition says so, and no pod is
    touched.

    Instances with a claim stay, but a new instance could not be created.
    """
    world = with_claims()
    message = blocked_message(world.change(volumeClaimTemplates=CLAIMS[:1]))
    assert message == (
        "template 'default': container 'app' mounts 'logs', which is neither a volume nor a claim "
        "template. Instances that have a claim of that name keep using it, and other "
        "instances get no pod"
    )
    assert all_decisions(world) == {"Keep/UpToDate"}
    assert blocked_message(world.change(volumeClaimTemplates=CLAIMS)) == ""


def test_instance_whose_claim_was_deleted_is_named_and_not_updated() -> None:
    world = with_claims().change(volumeClaimTemplates=CLAIMS[:1])
    del world.claims["logs-web-1"]
    assert "instance 1: template 'default': container 'app' mounts 'logs'" in blocked_message(world)
    world.change(template=template_with_mounts("data", "logs", image="nginx:2"))
    assert world.decisions()[1] == "Keep/Blocked"


def test_terminating_claim_counts_as_deleted() -> None:
    """The claim of an instance is being deleted: an update that mounts it is blocked.

    The claim disappears together with its pod, so a next pod could not be created.
    """
    world = with_claims().change(volumeClaimTemplates=CLAIMS[:1])
    world.claims["logs-web-1"] = terminating(world.claims["logs-web-1"])
    world.change(template=template_with_mounts("data", "logs", image="nginx:2"))
    assert world.decisions()[1] == "Keep/Blocked"
    assert "instance 1: template 'default': container 'app' mounts 'logs'" in blocked_message(world)


def test_update_that_mounts_a_claim_which_never_existed_is_blocked() -> None:
    """Mounts a claim without a claim template: the update is blocked until the claim template is
    added.
    """
    world = settled(
        replicas=2, template=template_with_mounts("data"), volumeClaimTemplates=CLAIMS[:1]
    )
    world.change(template=template_with_mounts("data", "logs"))
    assert all_decisions(world) == BLOCKED
    world.change(volumeClaimTemplates=CLAIMS).settle()
    assert blocked_message(world) == ""
    assert {*world.claims} == {"data-web-0", "data-web-1", "logs-web-0", "logs-web-1"}
    assert {"name": "logs", "persistentVolumeClaim": {"claimName": "logs-web-1"}} in (
        world.pod(1)["spec"]["volumes"]
    )


def _inject(operation: str, pod: Document) -> Document:
    """Adds a volume to every new pod, as the webhook of another controller would."""
    spec = pod["spec"]
    if operation != "CREATE":
        return pod
    return {**pod, "spec": {**spec, "volumes": [*spec.get("volumes", []), LOGS]}}


LOGS = {"name": "logs", "emptyDir": {}}


def tapp_with_webhook(**spec: Any) -> World:
    """Returns a TApp whose pods mount a volume that admission adds."""
    return World(
        tapp(**{"replicas": 2, "template": template_with_mounts("logs"), **spec}),
        policies=(_inject,),
    )


def test_mount_of_a_volume_that_a_webhook_adds_is_accepted() -> None:
    """Creates, updates and loses pods that mount a volume of a webhook: none of that is blocked."""
    world = tapp_with_webhook()
    assert all_decisions(world) == {"Create/NoPod"}
    world.settle()
    assert blocked_message(world) == ""
    world.change(template=template_with_mounts("logs", image="nginx:2"))
    assert "Recreate/TemplateChanged" in all_decisions(world)
    world.settle()
    assert blocked_message(world) == ""
    world.pods.clear()
    assert all_decisions(world) == {"Create/NoPod"}


def test_volume_that_was_removed_from_the_template_does_not_count_as_added_by_a_webhook() -> None:
    world = settled(replicas=2, template=template_with_mounts("logs", volumes=[LOGS]))
    world.change(template=template_with_mounts("logs"))
    assert all_decisions(world) == BLOCKED
    assert "mounts 'logs'" in blocked_message(world)


def test_mount_is_accepted_if_the_last_applied_annotation_was_stripped() -> None:
    """Updates pods that mount an unknown volume and have no last-applied annotation: the update is
    not blocked.

    Without the annotation, a pod does not show which volumes admission has added.
    """
    world = World(
        tapp(replicas=2, template=template_with_mounts("logs")), policies=(_inject,), strip=True
    )
    world.settle().change(template=template_with_mounts("logs", image="nginx:2"))
    assert "Recreate/TemplateChanged" in all_decisions(world)


def test_recorded_template_shows_which_volumes_admission_added_to_stripped_pods() -> None:
    lean: dict[str, Any] = {"strip": True, "history": True}
    world = World(tapp(template=template_with_mounts("logs", volumes=[LOGS])), **lean).settle()
    assert all_decisions(world.change(template=template_with_mounts("logs"))) == BLOCKED
    world = World(tapp(template=template_with_mounts("logs")), policies=(_inject,), **lean).settle()
    world.change(template=template_with_mounts("logs", image="nginx:2"))
    assert "Recreate/TemplateChanged" in all_decisions(world)


@pytest.mark.parametrize(
    "odd",
    [None, 7, "x", ["x"], {"name": ["x"]}, [{"name": ["x"], "mountPath": ["x"]}], [[7]]],
    ids=["null", "number", "string", "strings", "object", "objects", "lists"],
)
def test_template_fields_of_a_wrong_type_are_left_to_the_api_server(odd: Any) -> None:
    """A template or a last-applied annotation has fields of wrong types: the checks ignore them."""
    container = {"volumeMounts": odd, "volumeDevices": odd, "ports": odd, "resizePolicy": odd}
    made = template(container=container, schedulingGates=odd, securityContext={"sysctls": odd})
    assert World(tapp(template=made)).decisions() == {0: "Create/NoPod"}
    world = settled(template=template_with_mounts("logs", volumes=[LOGS]))
    spec = {"containers": odd, "volumes": odd, "initContainers": [{"volumeMounts": odd}]}
    world.modify(0, lambda pod: with_meta(pod, annotations=with_last_applied(pod, spec)))
    assert all_decisions(world.change(template=template_with_mounts("cache"))) == BLOCKED


def with_last_applied(pod: Document, spec: Document) -> Document:
    """Returns the pod's annotations with a last-applied annotation that has this spec."""
    applied = {"metadata": {"name": pod["metadata"]["name"]}, "spec": spec}
    return {**pod["metadata"]["annotations"], LAST_APPLIED: json.dumps(applied)}


def test_new_instance_with_an_unknown_mount_is_tried_before_it_is_named() -> None:
    """Creates a TApp that mounts an unknown volume: the condition follows after a refusal by the
    API server.

    Nothing can be lost, and the API server may accept the pod.
    """
    world = World(tapp(replicas=1, template=template_with_mounts("logs")))
    assert blocked_message(world) == ""
    world.pods.clear()
    assert "instance 0: template 'default': container 'app' mounts 'logs'" in blocked_message(world)


def test_update_is_blocked_if_two_claim_templates_have_the_same_name() -> None:
    """Repeats the name of a claim template: the update is blocked.

    A CRD without our rules accepts both, and it is not defined which one an instance gets.
    """
    world = settled(template=template_with_mounts("data"), volumeClaimTemplates=CLAIMS[:1])
    twice = [claim_template(), claim_template(storage="2Gi")]
    world.change(template=template_with_mounts("data", image="nginx:2"), volumeClaimTemplates=twice)
    assert all_decisions(world) == BLOCKED
    assert "spec.volumeClaimTemplates has 'data' twice" in blocked_message(world)


def test_pod_stays_if_its_name_is_no_valid_host_name() -> None:
    """Sets `spec.serviceName` while the TApp's name has a dot: the update is blocked.

    The API server would refuse the next pod.
    """
    world = settled()
    name = "a.b"
    world.parent["metadata"]["name"] = name
    world = World({**tapp(), "metadata": {**tapp()["metadata"], "name": name}}).settle()
    world.change(serviceName="all", template=template_with_mounts(image="nginx:2"))
    assert all_decisions(world) == BLOCKED
    assert "'a.b-0' is not" in blocked_message(world)


def test_mount_path_that_is_repeated_for_one_instance_blocks_only_that_instance() -> None:
    mounts = [
        {"name": "logs", "mountPath": "/logs/$(tapp.index)"},
        {"name": "logs", "mountPath": "/logs/1"},
    ]
    own = template(container={"volumeMounts": mounts}, volumes=[LOGS])
    world = settled(replicas=3, updateStrategy={"maxUnavailable": 3}).change(template=own)
    assert world.decisions() == {
        0: "Recreate/TemplateChanged",
        1: "Keep/Blocked",
        2: "Recreate/TemplateChanged",
    }
