"""Writes children until the observed objects match the hook's desired objects.

`Children.manage` deletes all children that are not desired, and then creates and updates kind by
kind. AlreadyExists, NotFound and Conflict errors are ignored, because the next sync sees the new
state. Any other error is collected, and the remaining children are still processed. Source:
Metacontroller 4.17.2, pkg/controller/common/manage_children.go.
"""

from collections.abc import Mapping
from contextlib import suppress

from simulator.api.apply import ApplyError, apply_update, with_last_applied
from simulator.api.store import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    DeleteOptions,
    NotFoundError,
    Store,
)
from simulator.metacontroller.cache import Entry
from simulator.metacontroller.protocol import DesiredChild
from simulator.objects.kinds import Kind, Kinds, UnknownKindError
from simulator.objects.objects import (
    Object,
    deep_equal,
    is_terminating,
    key_of,
    labels_of,
    owners_of,
    uid_of,
    with_meta,
)
from tapp.kube.owners import controller_ref

Observed = Mapping[Kind, Mapping[str, Entry]]


class Children:
    """Writes the children of one parent during one sync.

    `methods` maps each kind of children to the method of its update strategy: OnDelete, InPlace or
    Recreate.
    """

    def __init__(self, store: Store, kinds: Kinds, methods: Mapping[Kind, str]) -> None:
        self._store = store
        self._kinds = kinds
        self._methods = methods

    def manage(self, parent: Object, observed: Observed, wanted: list[DesiredChild]) -> list[str]:
        """Deletes, creates and updates children until they match the hook's response.

        Args:
            parent: the parent that becomes the owner of created children.
            observed: kind -> key -> existing child.
            wanted: the children that the hook has returned.

        Returns the messages of the errors. An error of one child does not prevent writes of the
        others.
        """
        errors: list[str] = []
        desired: dict[Kind, dict[str, DesiredChild]] = {}
        for child in wanted:
            try:
                kind = self._kinds.named(child.api_version, child.kind)
            except UnknownKindError as error:
                errors.append(str(error))
                continue
            desired.setdefault(kind, {})[child.key] = child
        for kind in sorted(observed, key=lambda kind: kind.sort_key):
            for key, entry in observed[kind].items():
                if key not in desired.get(kind, {}) and not is_terminating(entry.obj):
                    try:
                        self._delete(kind, entry.obj)
                    except ApiError as error:
                        name = "/".join(key_of(entry.obj))
                        errors.append(f"can't delete {kind.name} {name}: {error}")
        for kind in sorted(desired, key=lambda kind: kind.sort_key):
            known = observed.get(kind, {})
            for key, child in sorted(desired[kind].items()):
                try:
                    self._apply(kind, parent, known.get(key), child)
                except (ApiError, ApplyError) as error:
                    errors.append(str(error))
        return errors

    def _delete(self, kind: Kind, obj: Object) -> None:
        with suppress(NotFoundError):
            self._store.delete(kind, *key_of(obj), DeleteOptions(uid_of(obj), "Background"))

    def _apply(self, kind: Kind, parent: Object, entry: Entry | None, child: DesiredChild) -> None:
        # The hook's object and the cached object are the same as in an earlier sync that wrote
        # nothing, so the merge is skipped.
        if entry is not None and entry.applied == child.raw:
            return
        desired = _labelled(child.decode(), parent)
        if entry is None:
            self._create(kind, parent, desired)
        else:
            self._update(kind, entry, child, desired)

    def _update(self, kind: Kind, entry: Entry, child: DesiredChild, desired: Object) -> None:
        observed = entry.obj
        updated = apply_update(observed, desired)
        if deep_equal(updated, observed):
            entry.applied = child.raw
            return
        # An object in deletion is never updated; the garbage collector or its finalizers finish it.
        if is_terminating(observed):
            return
        match self._methods.get(kind):
            case "InPlace":
                with suppress(NotFoundError, ConflictError):
                    self._store.update(kind, updated)
            case "Recreate":
                self._delete(kind, observed)
            case _:
                pass

    def _create(self, kind: Kind, parent: Object, desired: Object) -> None:
        obj = with_last_applied(desired, desired)
        ref = controller_ref(parent)
        owners = owners_of(obj)
        # The hook may have listed the parent as an owner, which Metacontroller keeps as it is.
        if all(other.get("uid") != ref["uid"] for other in owners):
            obj = with_meta(obj, ownerReferences=[*owners, ref])
        with suppress(AlreadyExistsError):
            self._store.create(kind, obj)


def _labelled(desired: Object, parent: Object) -> Object:
    labels = {"controller-uid": uid_of(parent), **labels_of(desired)}
    return with_meta(desired, labels=labels)
