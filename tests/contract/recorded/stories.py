"""The recorded moments in the lives of TApps, which an upgrade of the hook must not disturb.

The docstring of a story is stored in its recording.
"""

from collections.abc import Callable
from typing import Any

from simulator.api.admission import Policy
from simulator.objects.objects import uid_of
from tests.builders import claim_template, manifest, template
from tests.policies import inject_sidecar, rewrite_images, strip_last_applied
from tests.scenarios.life import Document, Life

NAME = "web"


def born(policies: tuple[Policy, ...] = (), **spec: Any) -> Life:
    """Returns a TApp on a new cluster, at rest."""
    return Life(policies=policies).apply(tapp(**spec))


def tapp(**spec: Any) -> Document:
    """Returns the manifest of the TApp."""
    return manifest(NAME, namespace="default", **spec)


def idle() -> Life:
    """Three instances on two templates, at rest."""
    pool = {"canary": template("nginx:1.27", annotations={"note": "new"})}
    return born(replicas=3, templatePool=pool, templates={"1": "canary"})


def idle_with_admission() -> Life:
    """Admission injects a sidecar and rewrites images."""
    mirror = rewrite_images(lambda image: f"mirror.example/{image.removeprefix('mirror.example/')}")
    return born((inject_sidecar({"name": "mesh", "image": "mesh:1"}), mirror), replicas=2)


def idle_without_last_applied() -> Life:
    """The admission policy removes Metacontroller's annotation."""
    ports = [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53, "protocol": "TCP"}]
    return born((strip_last_applied,), replicas=2, template=template(container={"ports": ports}))


def every_kind_of_field() -> Life:
    """Probes, quantities, native sidecar, init container, tolerations, volumes, affinity."""
    rich = template(
        container={
            "env": [
                {"name": "A", "value": "1"},
                {"name": "POD", "valueFrom": _field("spec.nodeName")},
            ],
            "ports": [{"containerPort": 80}],
            "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}, "limits": {"cpu": 2}},
            "readinessProbe": {"httpGet": {"path": "/", "port": 80}, "initialDelaySeconds": 0},
            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp/x"}],
        },
        initContainers=[
            {"name": "init", "image": "init:1"},
            {"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"},
        ],
        volumes=[{"name": "tmp", "emptyDir": {}}],
        tolerations=[{"key": "gpu", "operator": "Exists"}],
        nodeSelector={"disk": "ssd"},
        terminationGracePeriodSeconds=5,
    )
    return born(replicas=2, template=rich, serviceName="web")


def in_place_mid_roll() -> Life:
    """One instance restarts in place, one has done so, two wait for the budget."""
    life = born(replicas=4)
    life.begin_patch(template=template("nginx:1.26"))
    return life.until(lambda: life.images().count("nginx:1.26") == 2)


def recreate_mid_roll() -> Life:
    """One pod terminates, the others wait for the budget."""
    life = born(replicas=3)
    life.begin_patch(template=template(container={"env": [{"name": "A", "value": "1"}]}))
    return life.until(
        lambda: any("deletionTimestamp" in pod["metadata"] for pod in life.pods.values())
    )


def after_in_place() -> Life:
    """At rest after two in-place updates: the pods carry their record."""
    return (
        born(replicas=2)
        .patch(template=template("nginx:1.26"))
        .patch(template=template("nginx:1.27"))
    )


def in_place_begins() -> Life:
    """The moment in which the first of two images is changed in place."""
    return born(replicas=2).begin_patch(template=template("nginx:1.26"))


def recreate_begins() -> Life:
    """Returns the moment in which the first of two pods is deleted for its replacement."""
    new = template(container={"env": [{"name": "A", "value": "1"}]})
    return born(replicas=2).begin_patch(template=new)


def take_over_begins() -> Life:
    """Pods of the old controller, labelled for Metacontroller: the first sync adopts them."""
    life = Life()
    life.world.hook.fail(1000)
    life.begin(tapp(replicas=2))
    for number in range(2):
        life.world.cluster.create(life.world.kinds.find("Pod"), _old_pod(life, number))
    life.world.run(5.0)
    life.world.hook.heal()
    return life


def taken_over() -> Life:
    """Pods of the old controller after that: nothing has restarted, nothing is left to do."""
    return take_over_begins().settle()


def finished_batch() -> Life:
    """Instances that succeeded and failed, and one that still runs."""
    life = born(replicas=3, template=template(restartPolicy="Never"))
    for number, code in ((0, 0), (1, 1)):
        life.world.kubelet.finish(life.pods[number], code)
    return life.settle()


def finished_and_gone() -> Life:
    """The whole app has finished and its pods are gone: only the status remembers."""
    life = born(replicas=2, template=template(restartPolicy="OnFailure"))
    for number in range(2):
        life.world.kubelet.finish(life.pods[number])
    return life.settle()


def claims() -> Life:
    """Instances with claims, and a claim that stayed behind after scaling down."""
    life = born(replicas=3, volumeClaimTemplates=[claim_template()])
    return life.patch(replicas=2)


def typo() -> Life:
    """A template name that leads nowhere: the pod stays."""
    return born(replicas=2).patch(templates={"0": "defualt"})


def killed_and_paused() -> Life:
    """One instance is stopped; the others wait behind `paused`."""
    life = born(replicas=3, statuses={"1": "Killed"})
    return life.patch(template=template("nginx:1.26"), updateStrategy={"paused": True})


STORIES: tuple[Callable[[], Life], ...] = (
    idle,
    idle_with_admission,
    idle_without_last_applied,
    every_kind_of_field,
    in_place_begins,
    in_place_mid_roll,
    recreate_begins,
    recreate_mid_roll,
    after_in_place,
    take_over_begins,
    taken_over,
    finished_batch,
    finished_and_gone,
    claims,
    typo,
    killed_and_paused,
)


def _field(path: str) -> Document:
    return {"fieldRef": {"fieldPath": path}}


def _old_pod(life: Life, number: int) -> Document:
    """Returns a pod of the old controller: decimal hashes, no annotation of Metacontroller."""
    body = template()
    labels = {
        **body["metadata"]["labels"],
        "tapp_template_hash_key": "3841233437",
        "tapp_uniq_hash_key": "2841233431",
        "tapp_instance_key": str(number),
        "controller-uid": uid_of(life.tapp),
    }
    meta = {"name": f"{NAME}-{number}", "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body["spec"]}
