"""Defines worlds: functions that build the request around a measured field.

Each world is a situation of a TApp, such as "all pods have to be created". Its arguments are the
field, the shape of the field's value (shapes.py) and a size from 1 to 8. Everything that multiplies
the field's cost, for example the number of pods, grows with the size. `WORLDS` has all worlds.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

from simulator.objects.objects import with_meta
from tapp.words.vocabulary import TEMPLATE, TEMPLATE_HASH
from tests.builders import (
    DELETED,
    Document,
    as_sent,
    claim_template,
    copied,
    request,
    tapp,
    template,
)
from tests.cost.fields import Field
from tests.cost.shapes import Shape, filled
from tests.unit.world import World

PODS: Final = 18
TEMPLATES: Final = 36
REVISIONS: Final = 9
"""Numbers of pods, templates and revisions of a request at size 1."""
BYTES, OWN_BYTES = 10_000, 2_500
"""Number of bytes in a field at size 1, and in a field that has its own value for each instance."""


class Asked(NamedTuple):
    """A call of the service.

    Attributes:
        path: the endpoint.
        body: the request.
        pods: the number of pods that the TApp of the request needs.
    """

    path: str
    body: bytes
    pods: int


@cache
def _pod() -> Document:
    (pod,) = World(tapp()).settle().pods.values()
    return pod


def pods(count: int) -> list[Document]:
    """Returns `count` running pods of one template, each on a different node."""
    found = []
    for number in range(count):
        pod = copied(_pod())
        meta = pod["metadata"]
        meta |= {"name": f"web-{number}", "uid": f"{number:08}-0000-4000-8000-000000000000"}
        keys = ("tapp_instance_key", "apps.kubernetes.io/pod-index")
        meta["labels"] |= {key: str(number) for key in keys if key in meta["labels"]}
        pod["spec"] |= {"hostname": f"web-{number}", "nodeName": f"node-{number}"}
        found.append(pod)
    return found


def bare(replicas: int) -> Document:
    """Returns a TApp that already has each object in which a measured field may stand."""
    return tapp(
        replicas=replicas,
        template=template("nginx:2"),
        updateStrategy={"maxUnavailable": "100%", "inPlaceUpdateStrategy": {"prePull": True}},
        disruptionBudget={},
        volumeClaimTemplates=[claim_template()],
        serviceTemplate={"metadata": {}, "spec": {"ports": [{"port": 80}]}},
        status={},
    )


def put(parent: Document, field: Field, value: Any) -> None:
    """Writes a value to the place of a field in the TApp `parent`; if the place is in a list, to
    its first item.
    """
    at: Any = parent.get(field.where, {})
    path = field.path
    if field.where in ("tapp", "template"):
        holder = parent if field.where == "tapp" else parent["spec"]["template"]
        at = holder["metadata"]
        for part in ("labels", "annotations"):
            at[part] = {**(at.get(part) or {}), path[0]: value}
        return
    for key in path[:-1]:
        at = at.setdefault(key, {})
        at = at[0] if isinstance(at, list) else at
    if path[-2:] == ("spec", "containers") or path[-2:] == ("spec", "volumes"):
        value = [*at.get(path[-1], []), *value]
    at[path[-1]] = value


def _size(shape: Shape, size: int) -> int:
    return size * (OWN_BYTES if shape.own else BYTES)


def _asked(parent: Document, children: list[Document], path: str = "/sync", **more: Any) -> Asked:
    made = request(
        parent, children, classes=[], services=[], budgets=[], **{"revisions": [], **more}
    )
    return Asked(path, as_sent(made), int(parent["spec"].get("replicas", 1)))


def _marked(children: list[Document], field: Field, value: Any) -> list[Document]:
    """Sets a label and an annotation with the field's name and this value on the pods, and returns
    the pods.

    With many pods the value is shorter. Pods stay unchanged if the field does not belong to pods.
    """
    if field.where != "pod" or not isinstance(value, str):
        return children
    share = value[: max(40, len(value) // len(children) * 4)] if children else value
    for pod in children:
        meta = pod["metadata"]
        for part in ("labels", "annotations"):
            meta[part] = {**meta[part], field.path[0]: share}
    return children


def created(field: Field, shape: Shape, size: int) -> Asked:
    """Returns a sync that has to create all pods of the TApp."""
    parent = bare(PODS * size * shape.crowd)
    put(parent, field, filled(field.schema, shape, _size(shape, size)))
    return _asked(parent, [])


def updated(field: Field, shape: Shape, size: int) -> Asked:
    """Returns a sync that has to update all pods to a new template and to pull the image on each
    pod's node.
    """
    parent, value = bare(PODS * size), filled(field.schema, shape, _size(shape, size))
    put(parent, field, value)
    return _asked(parent, _marked(pods(PODS * size), field, value))


def pooled(field: Field, shape: Shape, size: int) -> Asked:
    """Returns a sync with one template for each instance, which fills in that instance's value of
    `spec.values`.
    """
    count = TEMPLATES * size
    parent = bare(count)
    put(parent, field, filled(field.schema, shape, 200))
    spec = parent["spec"]
    value = {"name": "VALUE", "value": "$(tapp.values.each)"}
    (container, *others) = spec["template"]["spec"]["containers"]
    env = container.get("env") if isinstance(container.get("env"), list) else []
    body = {
        **spec["template"]["spec"],
        "containers": [{**container, "env": [*env, value]}, *others],
    }
    spec["templatePool"] = {
        f"t{number}": {"metadata": spec["template"]["metadata"], "spec": body}
        for number in range(count)
    }
    spec["templates"] = {str(number): f"t{number}" for number in range(count)}
    spec["values"] = {str(number): {"each": f"v{number}"} for number in range(count)}
    return _asked(parent, [])


def recorded(field: Field, shape: Shape, size: int) -> Asked:
    """Returns a sync with a long history of revisions, and a partition that keeps half of the
    pods.
    """
    parent = bare(PODS * size)
    put(parent, field, filled(field.schema, shape, _size(shape, size) // 8))
    spec = parent["spec"]
    spec["updateStrategy"]["partition"] = "50%"
    names = [f"v1-{number:020}" for number in range(REVISIONS * size)]
    parent["status"] |= {"kept": dict.fromkeys(names[:50], f"0-{PODS * size}")}
    revisions = [
        {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": f"web-{number}",
                "namespace": "shop",
                "labels": {TEMPLATE_HASH: name},
                "annotations": {TEMPLATE: "default"},
            },
            "revision": number,
            "data": {"template": spec["template"]},
        }
        for number, name in enumerate(names)
    ]
    return _asked(parent, pods(PODS * size), revisions=revisions)


def ended(field: Field, shape: Shape, size: int) -> Asked:
    """Returns the finalize call for a TApp that is being deleted."""
    parent, value = bare(PODS * size), filled(field.schema, shape, _size(shape, size))
    put(parent, field, value)
    parent = with_meta(parent, deletionTimestamp=DELETED)
    return _asked(parent, _marked(pods(PODS * size), field, value), "/finalize", finalizing=True)


Building = Callable[[Field, Shape, int], Asked]
WORLDS: Final[dict[str, Building]] = {
    "created": created,
    "updated": updated,
    "pooled": pooled,
    "recorded": recorded,
    "ended": ended,
}
"""Name -> the function that builds a request from the field, the shape of its value, and the
size.
"""
