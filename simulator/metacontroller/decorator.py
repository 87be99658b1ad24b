"""Metacontroller, running one DecoratorController.

A sync runs for every event of every object that the controller's selectors match. The sync calls
the hook and writes the response into the object itself. It first writes the status (PUT of the
subresource), and then labels and annotations (PUT of the object). Source: Metacontroller 4.17.2,
pkg/controller/decorator (controller.go, hooks.go, selector.go).

Manifests with these features are refused, because they are not modeled: attachments, the hooks
finalize and customize, annotation selectors, ignoreStatusChanges. Also not modeled is the removal
of a finalizer that an earlier version of the controller has added.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

import msgspec

from simulator.api.store import ConflictError, NotFoundError
from simulator.metacontroller import protocol
from simulator.metacontroller.cache import Entry, Environment
from simulator.metacontroller.composite import Hook, read_hook, resync_seconds_of
from simulator.metacontroller.hook_calls import HookCall, HookCaller
from simulator.metacontroller.hook_client import HookClient
from simulator.metacontroller.loop import Loop, Writes
from simulator.objects.kinds import Kind
from simulator.objects.objects import (
    Object,
    annotations_of,
    deep_equal,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    selector_matches,
    version_of,
    with_meta,
)

DecoratedKey = tuple[str, str, str, str]  # apiVersion, kind, namespace and name


@dataclass(frozen=True, slots=True)
class DecoratedResource:
    """One resource type that a DecoratorController syncs.

    If `label_selector` is None, all objects of this type are synced.
    """

    api_version: str
    plural: str
    label_selector: Object | None = None


@dataclass(frozen=True, slots=True)
class DecoratorManifest:
    """The content of one DecoratorController manifest, decoded.

    Attributes:
        manifest: the manifest as given; hook requests contain it.
        resources: the resource types that the controller syncs.
        sync: the hook that is called for each object.
        resync_seconds: seconds between two syncs of an unchanged object.
    """

    manifest: Object
    name: str
    resources: tuple[DecoratedResource, ...]
    sync: Hook
    resync_seconds: float


def read_decorator(manifest: Object) -> DecoratorManifest:
    """Parses a DecoratorController manifest and returns its content.

    Raises ValueError if the manifest has no sync hook, or needs a feature that is not modeled.
    """
    spec = manifest["spec"]
    hooks = spec.get("hooks") or {}
    unmodeled = ["attachments"] if spec.get("attachments") else []
    unmodeled += [name for name in ("finalize", "customize") if hooks.get(name)]
    unmodeled_fields = ("annotationSelector", "ignoreStatusChanges")
    unmodeled += [
        name for name in unmodeled_fields if any(name in each for each in spec["resources"])
    ]
    if unmodeled:
        message = f"DecoratorController {name_of(manifest)}: {', '.join(unmodeled)} not modelled"
        raise ValueError(message)
    sync = read_hook(hooks, "sync")
    if sync is None:
        raise ValueError(f"DecoratorController {name_of(manifest)}: no sync hook")
    return DecoratorManifest(
        manifest=manifest,
        name=name_of(manifest),
        resources=tuple(
            DecoratedResource(each["apiVersion"], each["resource"], each.get("labelSelector"))
            for each in spec["resources"]
        ),
        sync=sync,
        resync_seconds=resync_seconds_of(spec),
    )


class Decorator(Loop[DecoratedKey]):
    """Syncs all objects that one DecoratorController selects.

    `on_call` is called with each call of the hook before the request is sent.
    """

    def __init__(
        self,
        decorator: DecoratorManifest,
        environment: Environment,
        client: HookClient,
        on_call: Callable[[HookCall], None] = lambda _call: None,
    ) -> None:
        super().__init__(environment.clock, decorator.resync_seconds)
        self.decorator = decorator
        self._store = environment.store
        self._cache = environment.cache
        self._caller = HookCaller(environment.clock, client, on_call)
        self._controller = msgspec.json.encode(decorator.manifest)
        self._resources = {(each.api_version, each.plural): each for each in decorator.resources}
        self._kinds: dict[tuple[str, str], Kind] = {}
        self._cache.on_change(self._on_change)

    def _on_change(self, kind: Kind, old: Entry | None, new: Entry | None) -> None:
        """Requests a sync of an object that has changed, if its new state matches the selector.

        An object that has lost its matching label is not synced again.

        Args:
            kind: the kind of the object.
            old: the old state; None for a new object.
            new: the new state; None for a removed object.
        """
        resource, entry = self._resources.get((kind.api_version, kind.plural)), new or old
        if resource is None or entry is None:
            return
        self._kinds[kind.api_version, kind.name] = kind
        if self._cares_for(kind, entry.obj):
            self.queue.add(_key(kind, entry.obj))

    def _cares_for(self, kind: Kind, obj: Object) -> bool:
        resource = self._resources[kind.api_version, kind.plural]
        return selector_matches(resource.label_selector, labels_of(obj))

    def _keys(self) -> Iterable[DecoratedKey]:
        return [
            _key(kind, entry.obj)
            for kind in self._kinds.values()
            for entry in self._cache.entries(kind)
            if self._cares_for(kind, entry.obj)
        ]

    def _decide(self, key: DecoratedKey) -> Writes | None:
        api_version, name, *place = key
        kind = self._kinds[api_version, name]
        entry = self._cache.get(kind, (place[0], place[1]))
        if entry is None or not self._cares_for(kind, entry.obj):
            return None
        parts = protocol.decorate_request(self._controller, entry)
        hook = self.decorator.sync
        body = self._caller.call(hook, "decorate", key_of(entry.obj), parts)
        return partial(self._write, key, kind, entry.obj, protocol.decode_decorate(body, hook))

    def _write(
        self, key: DecoratedKey, kind: Kind, obj: Object, response: protocol.Decoration
    ) -> None:
        """Writes the hook's status, and then its labels and annotations, into the object.

        - If the status changes, a PUT of the status is sent, and then a PUT of the object, even if
          labels and annotations stay the same.
        - If only labels or annotations change, only the PUT of the object is sent.
        - If nothing changes, nothing is sent.

        A 404 or 409 ends the sync without an error, because the change that caused it brings the
        next sync.

        Args:
            key: the key of the object in the queue, for the next sync that the hook asks for.
            kind: the kind of the object.
            obj: the cached object that the hook has seen.
            response: the decoded response of the hook.
        """
        if response.resync_after > 0:
            self.queue.add_after(key, response.resync_after)
        observed = obj.get("status")
        status = observed if response.status is None else response.status
        status_changed = not deep_equal(observed, status)
        labels = _merged(labels_of(obj), response.labels)
        annotations = _merged(annotations_of(obj), response.annotations)
        if not status_changed and labels == labels_of(obj) and annotations == annotations_of(obj):
            return
        updated = with_meta(obj, labels=labels or None, annotations=annotations or None)
        if status is not None:
            updated["status"] = status
        try:
            if status_changed and kind.has_status:
                written = self._store.update_status(kind, updated)
                updated = with_meta(updated, resourceVersion=version_of(written))
            self._store.update(kind, updated)
        except (NotFoundError, ConflictError):
            return


def _key(kind: Kind, obj: Object) -> DecoratedKey:
    return kind.api_version, kind.name, namespace_of(obj), name_of(obj)


def _merged(present: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    both = {**present, **changes}
    return {key: value for key, value in both.items() if value is not None}
