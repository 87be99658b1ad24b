"""Finds the children of a parent; adopts and releases objects at the same time.

`claim` applies Metacontroller's rules (4.17.2, pkg/dynamic/controllerref). The label selector is
the one for the children of the parent.

* An object that the parent controls and the selector matches is a child, even during its deletion.
* An object that the parent controls and the selector does not match is released, unless the parent
  is being deleted.
* A matching object without a controller is adopted, after a live read has shown that the parent is
  not being deleted.

The hook gets the cached object, which is older than the adoption.
"""

from collections.abc import Callable
from contextlib import suppress

from simulator.api.store import ApiError, ConflictError, NotFoundError, Store
from simulator.metacontroller.cache import Entry, Environment
from simulator.objects.kinds import Kind
from simulator.objects.objects import (
    Object,
    controller_of,
    is_terminating,
    key_of,
    labels_of,
    namespace_of,
    owners_of,
    selector_matches,
    uid_of,
    with_meta,
)
from tapp.kube.owners import controller_ref

RETRIES = 5


class ClaimError(Exception):
    """A child cannot be adopted or released, or a desired child has labels of another parent."""


def atomic_update(
    store: Store,
    kind: Kind,
    obj: Object,
    change: Callable[[Object], Object],
    *,
    status: bool = False,
) -> Object:
    """Reads the live object, changes it and writes it; repeats this up to five times after a
    conflict.

    Args:
        store: the API server.
        kind: the kind of the object.
        obj: an older state of the object, which tells the namespace, name and uid.
        change: returns the object to write for the live object. If it returns the live object
            itself, nothing is written.
        status: True if only the status is written.

    Returns the written object, or the live object if nothing was written. Raises NotFoundError if
    the live object has another uid, and ConflictError if every attempt has met a conflict.
    """
    for attempt in range(RETRIES):
        current = store.get(kind, *key_of(obj))
        if uid_of(current) != uid_of(obj):
            raise NotFoundError(f'{kind.plural} "{key_of(obj)[1]}" not found')
        changed = change(current)
        if changed is current:
            return current
        try:
            if status and kind.has_status:
                return store.update_status(kind, changed)
            return store.update(kind, changed)
        except ConflictError:
            if attempt == RETRIES - 1:
                raise
    raise AssertionError


def selector_of(parent: Object) -> Object:
    """Returns the label selector that Metacontroller generates for the children of a parent."""
    return {"matchLabels": {"controller-uid": uid_of(parent)}}


def claim(
    environment: Environment, parent_kind: Kind, parent: Object, child_kind: Kind
) -> list[Entry]:
    """Returns the parent's children of one kind, after it has adopted and released objects.

    A child that was just adopted is returned as it was before the adoption. If errors occur, all
    objects are still processed; then ClaimError is raised with all errors.

    Args:
        environment: the API server and the caches.
        parent_kind: the kind of the parent.
        parent: the parent.
        child_kind: the kind of the children.
    """
    store, cache, selector = environment.store, environment.cache, selector_of(parent)
    namespace = namespace_of(parent)
    candidates = cache.owned_by(child_kind, uid_of(parent), namespace)
    candidates += cache.owned_by(child_kind, "", namespace)
    adoptable: bool | None = None
    claimed, errors = [], []
    for entry in candidates:
        matches = selector_matches(selector, labels_of(entry.obj))
        try:
            if controller_of(entry.obj) is not None:
                if matches:
                    claimed.append(entry)
                elif not is_terminating(parent):
                    _release(store, child_kind, entry.obj, parent)
            elif matches and not is_terminating(parent) and not is_terminating(entry.obj):
                if adoptable is None:
                    adoptable = _can_adopt(store, parent_kind, parent)
                if not adoptable:
                    message = f"can't adopt {key_of(entry.obj)}: the parent is being deleted"
                    raise ClaimError(message)
                if _adopt(store, child_kind, entry.obj, parent):
                    claimed.append(entry)
        except (ApiError, ClaimError) as error:
            errors.append(str(error))
    if errors:
        raise ClaimError("; ".join(errors))
    return claimed


def _can_adopt(store: Store, kind: Kind, parent: Object) -> bool:
    live = store.get(kind, *key_of(parent))
    return uid_of(live) == uid_of(parent) and not is_terminating(live)


def _adopt(store: Store, kind: Kind, child: Object, parent: Object) -> bool:
    ref = controller_ref(parent)

    def adopted(obj: Object) -> Object:
        others = [other for other in owners_of(obj) if other["uid"] != ref["uid"]]
        return with_meta(obj, ownerReferences=[*others, ref])

    try:
        atomic_update(store, kind, child, adopted)
    except NotFoundError:
        return False
    return True


def _release(store: Store, kind: Kind, child: Object, parent: Object) -> None:
    def released(obj: Object) -> Object:
        others = [ref for ref in owners_of(obj) if ref["uid"] != uid_of(parent)]
        return with_meta(obj, ownerReferences=others)

    with suppress(NotFoundError):
        atomic_update(store, kind, child, released)
