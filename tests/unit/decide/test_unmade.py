"""A pod never goes for a template of which none can be made; it is said before anything goes."""

import json
from typing import Any

import pytest

from simulator.api.apply import LAST_APPLIED
from simulator.objects.objects import with_meta
from tests.builders import Document, claim_template, tapp, template, terminating
from tests.unit.world import World, condition, settled

MOUNT = {"name": "logs", "mountPath": "/logs"}
OTHER = {"name": "other", "image": "busybox:1"}


def mounting(*names: str, image: str = "nginx:1", **spec: Any) -> Document:
    """A template whose container mounts these, and has a command, which no update changes."""
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in names]
    return template(image, container={"volumeMounts": mounts, "command": ["run", image]}, **spec)


def blocked(world: World) -> str:
    """The message of the next sync's `CreationBlocked`, "" where there is none."""
    answer = world.sync()
    found = condition(answer, "CreationBlocked")
    degraded = condition(answer, "Degraded")
    assert degraded is not None
    assert degraded["status"] == ("False" if found is None else "True")
    return "" if found is None else str(found["message"])


def kept(world: World) -> set[str]:
    """All decisions on the world's instances."""
    return set(world.decisions().values())


BLOCKED = {"Keep/Blocked"}
SPREAD = {"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 1}
WRONG: dict[str, tuple[Document, str]] = {
    "a mount of nothing": (mounting("logs"), "container 'app' mounts 'logs'"),
    "an init container's mount of nothing": (
        template("nginx:2", initContainers=[{**OTHER, "volumeMounts": [MOUNT]}]),
        "container 'other' mounts 'logs'",
    ),
    "a device of nothing": (
        template(container={"volumeDevices": [{"name": "raw", "devicePath": "/dev/x"}]}),
        "container 'app' mounts 'raw'",
    ),
    "a device that is a directory": (
        template(
            container={"volumeDevices": [{"name": "raw", "devicePath": "/dev/x"}]},
            volumes=[{"name": "raw", "emptyDir": {}}],
        ),
        "volumeDevices has 'raw', and that volume is no claim",
    ),
    "a device twice": (
        template(
            container={
                "volumeDevices": [
                    {"name": "raw", "devicePath": "/dev/x"},
                    {"name": "raw", "devicePath": "/dev/y"},
                ]
            },
            volumes=[{"name": "raw", "persistentVolumeClaim": {"claimName": "raw"}}],
        ),
        "spec.containers['app'].volumeDevices has the name 'raw' twice",
    ),
    "a path twice": (
        template(
            container={"volumeMounts": [MOUNT, MOUNT]}, volumes=[{"name": "logs", "emptyDir": {}}]
        ),
        "spec.containers['app'].volumeMounts has the mountPath '/logs' twice",
    ),
    "a volume both ways": (
        template(
            container={
                "volumeMounts": [MOUNT],
                "volumeDevices": [{"name": "logs", "devicePath": "/dev/x"}],
            },
            volumes=[{"name": "logs", "persistentVolumeClaim": {"claimName": "logs"}}],
        ),
        "volumeMounts has 'logs', and so has volumeDevices",
    ),
    "a container twice": (
        template(sidecars=[OTHER, OTHER]),
        "spec.containers[2].name 'other' is taken",
    ),
    "a container and an init container": (
        template(sidecars=[OTHER], initContainers=[OTHER]),
        "spec.initContainers[0].name 'other' is taken",
    ),
    "a volume twice": (
        template(volumes=[{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}]),
        "spec.volumes[1].name 'a' is taken",
    ),
    "a port's name twice": (
        template(
            container={
                "ports": [
                    {"name": "http", "containerPort": 80},
                    {"name": "http", "containerPort": 81},
                ]
            }
        ),
        "spec.containers['app'].ports has the name 'http' twice",
    ),
    "a port of the node twice": (
        template(
            container={"ports": [{"containerPort": 80, "hostPort": 80}]},
            sidecars=[{**OTHER, "ports": [{"containerPort": 81, "hostPort": 80}]}],
        ),
        "hostPort '80/TCP' of container 'other' is wanted twice",
    ),
    "a port of a container in the node's network": (
        template(
            container={"ports": [{"containerPort": 80}]},
            sidecars=[{**OTHER, "ports": [{"containerPort": 80}]}],
            hostNetwork=True,
        ),
        "hostPort '80/TCP' of container 'other' is wanted twice",
    ),
    "a resource claim twice": (
        template(resourceClaims=[{"name": "gpu", "resourceClaimName": "g"}] * 2),
        "spec.resourceClaims has the name 'gpu' twice",
    ),
    "a scheduling gate twice": (
        template(schedulingGates=[{"name": "example.com/a"}] * 2),
        "spec.schedulingGates has the name 'example.com/a' twice",
    ),
    "a spread constraint twice": (
        template(topologySpreadConstraints=[SPREAD, {**SPREAD, "maxSkew": 2}]),
        "topologySpreadConstraints has the topologyKey and whenUnsatisfiable 'zone', "
        "'ScheduleAnyway' twice",
    ),
    "a resize policy twice": (
        template(
            container={
                "resizePolicy": [
                    {"resourceName": "cpu", "restartPolicy": "NotRequired"},
                    {"resourceName": "cpu", "restartPolicy": "RestartContainer"},
                ]
            }
        ),
        "spec.containers['app'].resizePolicy has the resourceName 'cpu' twice",
    ),
    "a sysctl twice": (
        template(securityContext={"sysctls": [{"name": "net.a", "value": "1"}] * 2}),
        "spec.securityContext.sysctls has the name 'net.a' twice",
    ),
}


@pytest.mark.parametrize(("wrong", "words"), WRONG.values(), ids=WRONG)
def test_no_pod_goes_for_what_the_api_server_refuses(wrong: Document, words: str) -> None:
    """Every instance keeps its pod, `CreationBlocked` says why, and the repair rolls."""
    world = settled(replicas=2)
    before = world.uids()
    world.change(template=wrong)
    assert kept(world) == BLOCKED
    assert words in blocked(world)
    assert world.settle().uids() == before
    world.change(template=mounting(image="nginx:3")).settle()
    assert blocked(world) == ""
    assert all(before[name] != uid for name, uid in world.uids().items())


RIGHT: dict[str, Document] = {
    "one port number with two protocols": template(
        container={
            "ports": [
                {"name": "dns", "containerPort": 53, "protocol": "UDP", "hostPort": 53},
                {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP", "hostPort": 53},
            ]
        }
    ),
    "a port's name in two containers": template(
        container={"ports": [{"name": "http", "containerPort": 80}]},
        sidecars=[{**OTHER, "ports": [{"name": "http", "containerPort": 81}]}],
    ),
    "a path in two containers": template(
        container={"volumeMounts": [MOUNT]},
        sidecars=[{**OTHER, "volumeMounts": [MOUNT]}],
        volumes=[{"name": "logs", "emptyDir": {}}],
    ),
    "a path with and without a slash": template(
        container={"volumeMounts": [MOUNT, {"name": "logs", "mountPath": "/logs/"}]},
        volumes=[{"name": "logs", "emptyDir": {}}],
    ),
    "one port of the node for init containers": template(
        initContainers=[
            {**OTHER, "ports": [{"containerPort": 80, "hostPort": 80}]},
            {**OTHER, "name": "next", "ports": [{"containerPort": 80, "hostPort": 80}]},
        ]
    ),
    "an ephemeral volume as a device": template(
        container={"volumeDevices": [{"name": "raw", "devicePath": "/dev/x"}]},
        volumes=[
            {
                "name": "raw",
                "ephemeral": {"volumeClaimTemplate": {"spec": claim_template()["spec"]}},
            }
        ],
    ),
}


@pytest.mark.parametrize("right", RIGHT.values(), ids=RIGHT)
def test_what_kubernetes_takes_is_rolled(right: Document) -> None:
    """Names are taken once only where Kubernetes wants that."""
    world = settled(replicas=2).change(template=right)
    assert "Recreate/TemplateChanged" in kept(world)
    assert blocked(world) == ""


CLAIMS = [claim_template("data"), claim_template("logs")]


def with_claims() -> World:
    """Three instances with two claims each, both mounted."""
    return settled(replicas=3, template=mounting("data", "logs"), volumeClaimTemplates=CLAIMS)


def test_a_claim_template_that_is_still_mounted_is_said_at_once() -> None:
    """An instance that has its claim goes on with it, and a further one could not be made."""
    world = with_claims()
    message = blocked(world.change(volumeClaimTemplates=CLAIMS[:1]))
    assert message == (
        "template 'default': container 'app' mounts 'logs', which is neither a volume nor a claim "
        "template: who has a claim of that name goes on with it, another instance gets no pod"
    )
    assert kept(world) == {"Keep/UpToDate"}
    assert blocked(world.change(volumeClaimTemplates=CLAIMS)) == ""


def test_nothing_goes_where_the_claim_is_gone_too() -> None:
    """The instance whose claim somebody deleted is named, and keeps its pod on an update."""
    world = with_claims().change(volumeClaimTemplates=CLAIMS[:1])
    del world.claims["logs-web-1"]
    assert "instance 1: template 'default': container 'app' mounts 'logs'" in blocked(world)
    world.change(template=mounting("data", "logs", image="nginx:2"))
    assert world.decisions()[1] == "Keep/Blocked"


def test_a_claim_that_is_being_deleted_is_as_good_as_gone() -> None:
    """It only waits for the pod that uses it: that pod would never come back."""
    world = with_claims().change(volumeClaimTemplates=CLAIMS[:1])
    world.claims["logs-web-1"] = terminating(world.claims["logs-web-1"])
    world.change(template=mounting("data", "logs", image="nginx:2"))
    assert world.decisions()[1] == "Keep/Blocked"
    assert "instance 1: template 'default': container 'app' mounts 'logs'" in blocked(world)


def test_a_rollback_to_what_mounts_a_claim_that_never_was_blocks() -> None:
    """Claims of new names come back with their template, and with nothing else."""
    world = settled(replicas=2, template=mounting("data"), volumeClaimTemplates=CLAIMS[:1])
    world.change(template=mounting("data", "logs"))
    assert kept(world) == BLOCKED
    world.change(volumeClaimTemplates=CLAIMS).settle()
    assert blocked(world) == ""
    assert {*world.claims} == {"data-web-0", "data-web-1", "logs-web-0", "logs-web-1"}
    assert {"name": "logs", "persistentVolumeClaim": {"claimName": "logs-web-1"}} in (
        world.pod(1)["spec"]["volumes"]
    )


def _inject(operation: str, pod: Document) -> Document:
    """A webhook's volume, in every pod that is made."""
    spec = pod["spec"]
    if operation != "CREATE":
        return pod
    return {**pod, "spec": {**spec, "volumes": [*spec.get("volumes", []), LOGS]}}


LOGS = {"name": "logs", "emptyDir": {}}


def injected(**spec: Any) -> World:
    """A TApp whose pods mount what admission adds."""
    return World(tapp(**{"replicas": 2, "template": mounting("logs"), **spec}), policies=(_inject,))


def test_a_mount_that_admission_serves_is_tried_and_then_known() -> None:
    """A new TApp is made, rolls, and makes lost pods anew: nothing of it is refused."""
    world = injected()
    assert kept(world) == {"Create/NoPod"}
    world.settle()
    assert blocked(world) == ""
    world.change(template=mounting("logs", image="nginx:2"))
    assert "Recreate/TemplateChanged" in kept(world)
    world.settle()
    assert blocked(world) == ""
    world.pods.clear()
    assert kept(world) == {"Create/NoPod"}


def test_a_volume_that_was_the_templates_own_is_no_proof() -> None:
    """It left the template and its mount stayed: no admission adds it."""
    world = settled(replicas=2, template=mounting("logs", volumes=[LOGS]))
    world.change(template=mounting("logs"))
    assert kept(world) == BLOCKED
    assert "mounts 'logs'" in blocked(world)


def test_without_the_annotation_that_tells_what_was_asked_for_it_is_tried() -> None:
    """Lean pods do not tell what admission has added: a doubt is no refusal."""
    world = World(tapp(replicas=2, template=mounting("logs")), policies=(_inject,), strip=True)
    world.settle().change(template=mounting("logs", image="nginx:2"))
    assert "Recreate/TemplateChanged" in kept(world)


def test_a_record_tells_what_was_the_templates_own() -> None:
    """Of lean pods, too: a volume that left the template, and one that never was in it."""
    lean: dict[str, Any] = {"strip": True, "history": True}
    world = World(tapp(template=mounting("logs", volumes=[LOGS])), **lean).settle()
    assert kept(world.change(template=mounting("logs"))) == BLOCKED
    world = World(tapp(template=mounting("logs")), policies=(_inject,), **lean).settle()
    world.change(template=mounting("logs", image="nginx:2"))
    assert "Recreate/TemplateChanged" in kept(world)


@pytest.mark.parametrize("odd", [None, 7, "x", ["x"], {"name": ["x"]}, [{"name": ["x"]}], [[7]]])
def test_what_has_another_type_is_left_to_the_api_server(odd: Any) -> None:
    """In a template as in the annotation that tells what was asked for."""
    container = {"volumeMounts": odd, "volumeDevices": odd, "ports": odd, "resizePolicy": odd}
    made = template(container=container, schedulingGates=odd, securityContext={"sysctls": odd})
    assert World(tapp(template=made)).decisions() == {0: "Create/NoPod"}
    world = settled(template=mounting("logs", volumes=[LOGS]))
    spec = {"containers": odd, "volumes": odd, "initContainers": [{"volumeMounts": odd}]}
    world.modify(0, lambda pod: with_meta(pod, annotations=noted(pod, spec)))
    assert kept(world.change(template=mounting("cache"))) == BLOCKED


def noted(pod: Document, spec: Document) -> Document:
    """A pod's annotations, which say that Metacontroller asked for this."""
    applied = {"metadata": {"name": pod["metadata"]["name"]}, "spec": spec}
    return {**pod["metadata"]["annotations"], LAST_APPLIED: json.dumps(applied)}


def test_an_instance_without_a_pod_is_tried_and_then_named() -> None:
    """Nothing can be lost; the API server has the word, and what it refuses is explained."""
    world = World(tapp(replicas=1, template=mounting("logs")))
    assert blocked(world) == ""
    world.pods.clear()
    assert "instance 0: template 'default': container 'app' mounts 'logs'" in blocked(world)


def test_claim_templates_of_one_name_block_an_update() -> None:
    """A CRD without our rules takes them; nobody can tell which of both an instance gets."""
    world = settled(template=mounting("data"), volumeClaimTemplates=CLAIMS[:1])
    twice = [claim_template(), claim_template(storage="2Gi")]
    world.change(template=mounting("data", image="nginx:2"), volumeClaimTemplates=twice)
    assert kept(world) == BLOCKED
    assert "spec.volumeClaimTemplates has 'data' twice" in blocked(world)


def test_a_pod_does_not_go_for_a_host_name_that_it_cannot_have() -> None:
    """As for mounts: the next pod would be refused for `spec.serviceName`."""
    world = settled()
    name = "a.b"
    world.parent["metadata"]["name"] = name
    world = World({**tapp(), "metadata": {**tapp()["metadata"], "name": name}}).settle()
    world.change(serviceName="all", template=mounting(image="nginx:2"))
    assert kept(world) == BLOCKED
    assert "'a.b-0' is none" in blocked(world)


def test_own_values_are_looked_at_one_by_one() -> None:
    """Two paths that are one for one instance alone block that one."""
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
