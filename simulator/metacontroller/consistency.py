"""Could Metacontroller really send this request?

A test that feeds a hook an impossible request proves nothing. `problems` lists what the real
Metacontroller, the API server or a kubelet would never produce.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulator.metacontroller.cache import child_key
from simulator.metacontroller.claiming import ClaimError, parent_selector
from simulator.metacontroller.composite import Composite, Hook, read
from simulator.metacontroller.decorator import read_decorator
from simulator.objects.kinds import Kinds
from simulator.objects.objects import (
    Object,
    controller_of,
    finalizers_of,
    generation_of,
    is_terminating,
    labels_of,
    meta,
    name_of,
    namespace_of,
    owners_of,
    selects,
    uid_of,
)

SYNC_KEYS = {"controller", "parent", "children", "related", "finalizing"}
CUSTOMIZE_KEYS = {"controller", "parent"}
DECORATE_KEYS = {"controller", "object", "attachments", "related", "finalizing"}
_SERVER_FIELDS = ("name", "uid", "resourceVersion", "creationTimestamp")
_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")


def problems(request: Object, kinds: Kinds | None = None) -> list[str]:
    """Return what is impossible about a request to sync, finalize, customize or decorate."""
    if set(request) == DECORATE_KEYS:
        return list(_decorate(request))
    if set(request) not in (SYNC_KEYS, CUSTOMIZE_KEYS):
        return [f"top-level keys are {sorted(request)}"]
    composite = read(request["controller"])
    found = [f"parent: {text}" for text in _object(request["parent"])]
    found += _parent(request["parent"], composite)
    if set(request) == SYNC_KEYS:
        found += _sync(request, composite, kinds or Kinds())
    return found


def _decorate(request: Object) -> Iterator[str]:
    decorator, obj = read_decorator(request["controller"]), request["object"]
    yield from (f"object: {text}" for text in _object(obj))
    candidates = [each for each in decorator.resources if each.api_version == obj["apiVersion"]]
    if not any(each.matches(obj) for each in candidates):
        yield "object: no selector matches it"
    for group in ("attachments", "related"):
        if request[group] != {}:
            yield f"{group}: the controller has none"
    if request["finalizing"] is not False:
        yield "finalizing should be False"
    if obj.get("kind") == "Pod":
        yield from (f"object: {text}" for text in _pod(obj))


def _object(obj: Object) -> Iterator[str]:
    if not obj.get("apiVersion") or not obj.get("kind"):
        yield "no apiVersion or kind"
    for field in _SERVER_FIELDS:
        if not meta(obj).get(field):
            yield f"metadata.{field} is missing"
    if is_terminating(obj) != ("deletionGracePeriodSeconds" in meta(obj)):
        yield "deletionTimestamp and deletionGracePeriodSeconds come together"
    if sum(ref.get("controller") is True for ref in owners_of(obj)) > 1:
        yield "more than one controller"


def _parent(parent: Object, composite: Composite) -> Iterator[str]:
    if parent.get("apiVersion") != composite.parent_api_version:
        yield f"parent: apiVersion {parent.get('apiVersion')} is not the parent resource's"
    if generation_of(parent) < 1:
        yield "parent: a custom resource has a generation"
    observed = (parent.get("status") or {}).get("observedGeneration", 0)
    if observed > generation_of(parent):
        yield "parent: status.observedGeneration is in the future"


def _sync(request: Object, composite: Composite, kinds: Kinds) -> Iterator[str]:
    parent = request["parent"]
    leaving = is_terminating(parent) or not composite.matches(parent)
    if composite.finalize and not leaving and composite.finalizer not in finalizers_of(parent):
        yield f"parent: Metacontroller adds {composite.finalizer} before it asks"
    finalizing = composite.finalize is not None and leaving
    if request["finalizing"] is not finalizing:
        yield f"finalizing should be {finalizing}"
    hook = composite.finalize if finalizing else composite.sync
    if hook is None:
        yield "there is no such hook"
        return
    declared = {kinds.by_plural(c.api_version, c.plural).hook_key for c in composite.children}
    if set(request["children"]) != declared:
        yield f"children has the kinds {sorted(request['children'])}, not {sorted(declared)}"
    for group in ("children", "related"):
        yield from _group(group, request[group], parent, hook)
    yield from _ownership(request["children"], parent, composite)
    for key, pod in request["children"].get("Pod.v1", {}).items():
        yield from (f"children Pod.v1 {key}: {text}" for text in _pod(pod))


def _group(name: str, group: Object, parent: Object, hook: Hook) -> Iterator[str]:
    uids: set[str] = set()
    for hook_key, objects in group.items():
        for key, obj in objects.items():
            where = f"{name} {hook_key} {key}"
            yield from (f"{where}: {text}" for text in _object(obj))
            namespaced = hook.version == "v2" or not namespace_of(parent)
            if key != (child_key(obj) if namespaced else name_of(obj)):
                yield f"{where}: the key of a {hook.version} request would be different"
            api_version, _, kind = hook_key.rpartition(".")[2], "", hook_key.partition(".")[0]
            if obj.get("kind") != kind or not str(obj.get("apiVersion")).endswith(api_version):
                yield f"{where}: is a {obj.get('apiVersion')} {obj.get('kind')}"
            if uid_of(obj) in uids:
                yield f"{where}: another object has the same uid"
            uids.add(uid_of(obj))


def _ownership(children: Object, parent: Object, composite: Composite) -> Iterator[str]:
    try:
        selector = parent_selector(parent, generated=composite.generate_selector)
    except ClaimError as error:
        yield f"parent: {error}"
        return
    for hook_key, objects in children.items():
        for key, child in objects.items():
            where = f"children {hook_key} {key}"
            ref = controller_of(child)
            if ref is not None and ref.get("uid") != uid_of(parent):
                yield f"{where}: is controlled by somebody else"
            if ref is None and (is_terminating(child) or is_terminating(parent)):
                yield f"{where}: nobody adopts what terminates"
            if not selects(selector, labels_of(child)):
                yield f"{where}: the parent's selector does not match it"
            if namespace_of(parent) and namespace_of(child) != namespace_of(parent):
                yield f"{where}: lives in another namespace"


def _pod(pod: Object) -> Iterator[str]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    names = {container["name"] for container in spec.get("containers") or []}
    if not names:
        yield "a pod has containers"
    if status.get("phase") not in _PHASES:
        yield f"phase is {status.get('phase')}"
    statuses = status.get("containerStatuses") or []
    if not {one["name"] for one in statuses} <= names:
        yield "status of containers that are not in the spec"
    if statuses and not spec.get("nodeName"):
        yield "has container statuses but no node"
    if status.get("observedGeneration", 0) > generation_of(pod):
        yield "status.observedGeneration is in the future"
    for one in statuses:
        if len(one.get("state") or {}) > 1:
            yield f"container {one['name']} is in several states"
        if "running" in (one.get("state") or {}) and not one.get("containerID"):
            yield f"container {one['name']} runs without a containerID"
