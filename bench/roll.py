"""A TApp created and rolled in place in the simulator, and what Metacontroller asked meanwhile."""

import logging
from copy import deepcopy
from functools import cache

import yaml

from bench.fields import managed_fields
from bench.herd import Call
from bench.inprocess import quiet
from bench.parent import NEW, OLD, Document, tapp
from bench.server import ROOT
from simulator.api.admission import Operation
from simulator.metacontroller.hook_calls import HookCall
from simulator.metacontroller.hook_client import WsgiHook
from simulator.objects.clock import EPOCH, Clock
from simulator.world import World


def played(n: int, *, ignore_status_changes: bool = True) -> tuple[list[Call], list[Call]]:
    """The calls of the sync hook while `n` instances are created, and while they are rolled.

    A tenth may be unavailable at a time; `ignore_status_changes` goes into the CompositeController.
    """
    clock = Clock()
    logging.getLogger("tapp").setLevel(logging.ERROR)
    application = quiet(clock.unix)
    controller = deepcopy(_manifest("metacontroller/base/composite-controller.yaml"))
    controller["spec"]["parentResource"]["ignoreStatusChanges"] = ignore_status_changes
    crds = [_manifest("crds/tapp.yaml")]

    def signed(operation: Operation, obj: Document) -> Document:
        """The API server's note of what Metacontroller wrote: a quarter of a pod's bytes."""
        if obj.get("kind") != "Pod":
            return obj
        mine = {**managed_fields(_written(obj))[0], "time": clock.timestamp()}
        old = obj["metadata"].get("managedFields") or [] if operation == "UPDATE" else []
        others = [entry for entry in old if entry["manager"] != mine["manager"]]
        return {**obj, "metadata": {**obj["metadata"], "managedFields": [mine, *others]}}

    world = World(controller, WsgiHook(application), clock=clock, crds=crds, policies=[signed])
    sent: list[Call] = []

    def note(call: HookCall) -> None:
        if call.hook == "sync":
            sent.append(Call(EPOCH.timestamp() + call.time, call.parts))

    world.on_call(note)
    created = 0
    for image in (OLD, NEW):
        created = len(sent)
        parent = tapp(n, image)
        world.apply({**parent, "metadata": {"name": parent["metadata"]["name"]}})
        world.settle()
    return sent[:created], sent[created:]


def _written(pod: Document) -> Document:
    """What the hook writes of a pod, roughly."""
    return {key: pod["metadata"].get(key) for key in ("labels", "annotations")} | {
        "spec": pod.get("spec")
    }


@cache
def _manifest(path: str) -> Document:
    document: Document = yaml.load((ROOT / path).read_text(), yaml.CSafeLoader)
    return document
