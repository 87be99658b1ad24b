"""Builds TApps in several states, for the output of `status`, `why` and the page.

Golden files quote the docstring of a function that brings a TApp into a state.
"""

from simulator.objects.objects import with_meta
from tests.plugin.fake_kubectl import Document, StandIn
from tests.scenarios.life import Life, example


def web(**spec: object) -> Document:
    """Returns the manifest of a TApp `web` with four instances; `spec` has further fields of the
    spec.
    """
    (document,) = example("same-template")
    return {
        **document,
        "metadata": {"name": "web"},
        "spec": {**document["spec"], "replicas": 4, **spec},
    }


def template(image: str = "nginx:1.28", **spec: object) -> Document:
    """Returns a pod template with a container `web`; `spec` has further fields of the pod spec."""
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": image}], **spec},
    }


def calm(life: Life) -> None:
    """All instances run."""


def crashing(life: Life) -> None:
    """A new image whose container crashes repeatedly."""
    life.world.kubelet.levers.crashing_images.add("nginx:bad")
    life.begin_patch(template=template("nginx:bad")).world.run(120)


def stuck_image(life: Life) -> None:
    """A roll-out to an image that does not exist."""
    life.world.kubelet.levers.bad_images.add("nginx:typo")
    life.begin_patch(template=template("nginx:typo")).world.run(90)


def many(count: int) -> StandIn:
    """Returns a fake kubectl for a TApp with `count` instances during a rollout.

    The pods are copies, so that no time is spent on the simulation of their start.
    """
    life = Life().apply(web(replicas=3))
    life.begin_patch(replicas=3, template=template("nginx:1.29"))
    life.world.run(0.2)
    kinds, cluster = life.world.kinds, life.world.cluster
    pod, kind = life.world.list("Pod")[2], kinds.find("pods")
    tapp = life.tapp
    cluster._objects[kinds.find("tapps")]["default", "web"] = {
        **tapp,
        "spec": {**tapp["spec"], "replicas": count},
    }
    for id in range(3, count):
        node = f"node-{id % 40}"
        copy = with_meta(pod, name=f"web-{id}", uid=f"uid-{id}")
        cluster._objects[kind]["default", f"web-{id}"] = {
            **copy,
            "spec": {**copy["spec"], "nodeName": node},
        }
    return StandIn(life.world)
