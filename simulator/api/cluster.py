"""The API server, in memory.

`Cluster` implements the API that Metacontroller uses (`store.Store`). It models uids, one global
resourceVersion, conflicts, generations, writes without effect, the status subresource, graceful
deletion, finalizers, deletion propagation, admission and validation. Sources: apiserver's
registry/rest (delete.go, update.go) and the Kubernetes API conventions. Controllers (garbage
collector, kubelets) react to the events of `Cluster.subscribe`.
"""

import random
from collections.abc import Callable, Sequence
from copy import copy
from itertools import count

from simulator.api.admission import Admission
from simulator.api.apply import SYSTEM_FIELDS
from simulator.api.defaults import fill_in
from simulator.api.deletion import grace_seconds, with_propagation
from simulator.api.store import (
    DEFAULT,
    AlreadyExistsError,
    ConflictError,
    DeleteOptions,
    Event,
    ForbiddenError,
    InvalidError,
    NotFoundError,
)
from simulator.api.validation import (
    check_claim_update,
    check_metadata,
    check_metadata_update,
    check_pod,
    check_pod_update,
    check_revision,
    check_revision_update,
    check_service_update,
    with_resources,
)
from simulator.objects.clock import Clock
from simulator.objects.kinds import (
    CLAIM,
    NAMESPACE,
    POD,
    REVISION,
    SERVICE,
    STORAGE_CLASS,
    Kind,
    Kinds,
)
from simulator.objects.objects import (
    Json,
    Key,
    Object,
    deep_equal,
    finalizers_of,
    generation_of,
    is_terminating,
    key_of,
    meta,
    name_of,
    namespace_of,
    owners_of,
    uid_of,
    uids,
    version_of,
    with_meta,
)
from tapp.kube.stored import encoded


class Cluster:
    """All objects of one cluster, in memory; implements `store.Store`.

    Args:
        clock: the simulated time, for creation and deletion timestamps.
        kinds: the resource types that the cluster has.
        rng: the source of random numbers.
        version: the resourceVersion before the first write; each write increments it. Uids contain
            this number, so that two clusters with different numbers have no uid in common.
    """

    def __init__(self, clock: Clock, kinds: Kinds, rng: random.Random, version: int = 0) -> None:
        self.clock = clock
        self.kinds = kinds
        self.admission = Admission(rng)
        self.revision = version
        self._objects: dict[Kind, dict[Key, Object]] = {}
        self._locations: dict[str, tuple[Kind, Key]] = {}
        self._listeners: list[Callable[[Event], None]] = []
        self._uids = uids(version)
        self._generated = count(1)

    def subscribe(self, listener: Callable[[Event], None]) -> None:
        """Registers a function that is called with every committed change, in order."""
        self._listeners.append(listener)

    def detached_copy(self) -> "Cluster":
        """Returns a copy of the cluster for dry runs.

        Writes to the copy do not change this cluster, and no controller reacts to them, because the
        copy has no listeners.
        """
        found = copy(self)
        found._objects = {kind: dict(objects) for kind, objects in self._objects.items()}
        found._locations, found._listeners = dict(self._locations), []
        return found

    def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """Returns an object, or raises NotFoundError if the object does not exist."""
        obj = self.find(kind, namespace, name)
        if obj is None:
            raise NotFoundError(f'{kind.plural} "{name}" not found')
        return obj

    def find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """Returns an object, or None if the object does not exist."""
        return self._objects.get(kind, {}).get((namespace if kind.namespaced else "", name))

    def list(self, kind: Kind, namespace: str | None = None) -> list[Object]:
        """Returns all objects of a kind, sorted by namespace and name.

        If `namespace` is None, the objects of all namespaces are returned.
        """
        objects = self._objects.get(kind, {})
        return [obj for key, obj in sorted(objects.items()) if namespace in (None, key[0])]

    def find_by_uid(self, uid: str) -> tuple[Kind, Object] | None:
        """Returns the kind and the object with this uid; None if no existing object has the uid."""
        if uid not in self._locations:
            return None
        kind, key = self._locations[uid]
        return kind, self._objects[kind][key]

    def contents(self, namespace: str | None = None) -> Sequence[tuple[Kind, Object]]:
        """Returns all namespaced objects with their kinds, sorted by kind, namespace and name.

        If `namespace` is None, the objects of all namespaces are returned.
        """
        return [
            (kind, obj)
            for kind in sorted(self._objects, key=lambda kind: kind.sort_key)
            for obj in self.list(kind, namespace)
            if kind.namespaced
        ]

    def create(self, kind: Kind, obj: Object) -> Object:
        """Creates the object, after admission and validation, and returns it as stored.

        Raises AlreadyExistsError if an object of this name exists, ForbiddenError if the namespace
        is being deleted, and InvalidError if the object is invalid.
        """
        obj = self._with_name(kind, obj)
        if kind.namespaced:
            namespace = self.get(NAMESPACE, "", namespace_of(obj))
            if is_terminating(namespace):
                raise ForbiddenError(f"namespace {namespace_of(obj)} is being terminated")
        if key_of(obj) in self._objects.get(kind, {}):
            raise AlreadyExistsError(f'{kind.plural} "{name_of(obj)}" already exists')
        if kind is POD:
            obj = self.admission.pod_create(obj)
            check_pod(obj)
        elif kind is CLAIM:
            obj = self.admission.claim_create(obj, self.list(STORAGE_CLASS))
            check_metadata(obj)
        elif kind is SERVICE:
            obj = self.admission.service_create(obj)
            check_metadata(obj)
        elif kind is REVISION:
            obj = self.admission.revision_create(obj)
            check_revision(obj)
        else:
            check_metadata(obj)
            if kind.has_status:
                obj = {key: value for key, value in obj.items() if key != "status"}
            obj = fill_in(obj, kind.schema)
        obj = with_meta(
            obj,
            uid=next(self._uids),
            creationTimestamp=self.clock.timestamp(),
            generation=1 if kind.has_generation else None,
            deletionTimestamp=None,
            deletionGracePeriodSeconds=None,
        )
        return self._commit(kind, None, obj)

    def restore(self, kind: Kind, obj: Object) -> None:
        """Stores an object of another cluster unchanged, with its uid, resourceVersion and status.

        Neither admission nor validation runs. The listeners see the object as created.
        """
        self._objects.setdefault(kind, {})[key_of(obj)] = obj
        self._locations[uid_of(obj)] = kind, key_of(obj)
        self._publish(Event(kind, None, obj, self.revision))

    def update(self, kind: Kind, obj: Object) -> Object:
        """Replaces an object except for its status (PUT), and returns it as stored.

        Raises ConflictError if the stored object has another resourceVersion than `obj`, and
        InvalidError if the change is not permitted.
        """
        old = self._get_for_update(kind, obj)
        new = {**obj, "metadata": self._server_fields(obj, old)}
        if kind.has_status:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        if kind is POD:
            new = self.admission.pod_update(new)
            check_pod_update(new, old)
        elif kind is CLAIM:
            new = self.admission.claim_update(new)
            check_claim_update(new, old)
            self.admission.check_claim_resize(new, old, self.list(STORAGE_CLASS))
        elif kind is SERVICE:
            new = self.admission.service_update(new, old)
            check_service_update(new, old)
        elif kind is REVISION:
            check_revision_update(new, old)
        else:
            check_metadata_update(new, old)
            new = fill_in(new, kind.schema)
        if kind.has_generation and not _has_same_content(new, old):
            new = with_meta(new, generation=generation_of(old) + 1)
        return self._replace(kind, old, new)

    def resize(self, pod: Object) -> Object:
        """Changes the resources of a pod's containers (PUT of the subresource `resize`).

        Returns the pod as stored; all other changes in `pod` are ignored. Raises ConflictError if
        the stored pod has another resourceVersion than `pod`.
        """
        old = self._get_for_update(POD, pod)
        new = with_resources(old, pod)
        if not _has_same_content(new, old):
            new = with_meta(new, generation=generation_of(old) + 1)
        return self._replace(POD, old, new)

    def update_status(self, kind: Kind, obj: Object) -> Object:
        """Replaces the status of an object (PUT of the subresource `status`).

        Returns the object as stored. For pods, the metadata is replaced, too. Raises ConflictError
        if the stored object has another resourceVersion than `obj`.
        """
        old = self._get_for_update(kind, obj)
        if not kind.has_status:
            raise NotFoundError("the server could not find the requested resource (status)")
        new = {key: value for key, value in old.items() if key != "status"}
        if obj.get("status") is not None:
            new["status"] = obj["status"]
        if kind.custom:
            new = fill_in(new, kind.schema)
        if kind is POD:
            # An update of a pod's status cannot change its owner references (podStatusStrategy in
            # pkg/registry/core/pod/strategy.go).
            owners = owners_of(old)
            new["metadata"] = self._server_fields(with_meta(obj, ownerReferences=owners), old)
            check_metadata_update(new, old)
        return self._replace(kind, old, new)

    def edit(self, kind: Kind, obj: Object, change: Callable[[Object], Object]) -> Object:
        """Replaces a stored object by the object that `change` returns for it.

        Neither admission nor validation runs. The scheduler, the kubelets and the controllers of
        the simulator write this way. Returns the object as stored.

        Args:
            kind: the kind of the object.
            obj: any state of the object, which tells its namespace and name.
            change: returns the new object for the stored object.
        """
        old = self.get(kind, *key_of(obj))
        return self._replace(kind, old, change(old))

    def delete(
        self, kind: Kind, namespace: str, name: str, options: DeleteOptions = DEFAULT
    ) -> None:
        """Deletes the object now, after its grace period, or when its last finalizer is removed.

        Raises ConflictError if `options.uid` is set and is not the object's uid.
        """
        old = self.get(kind, namespace, name)
        uid = options.uid
        if uid is not None and uid != uid_of(old):
            message = f"Precondition failed: UID in precondition: {uid}, in object: {uid_of(old)}"
            raise ConflictError(message)
        grace = grace_seconds(kind, old, options.grace_seconds)
        finalizers = with_propagation(finalizers_of(old), options.propagation)
        new = with_meta(old, finalizers=finalizers)
        if not is_terminating(old):
            # A deletion increments the generation (registry/rest/delete.go, BeforeDelete).
            if generation_of(old):
                new = with_meta(new, generation=generation_of(old) + 1)
        # A second delete may only shorten the grace period.
        elif grace >= int(meta(old).get("deletionGracePeriodSeconds", 0)):
            self._replace(kind, old, new)
            return
        if grace or finalizers or kind is NAMESPACE:
            self._replace(kind, old, new, deletion_grace=grace)
        else:
            self.remove(kind, old)

    def remove(self, kind: Kind, old: Object) -> Object:
        """Removes the object from the store at once, without grace period and finalizers.

        Returns the last state of the object, with the resourceVersion of the removal.
        """
        self.revision += 1
        del self._objects[kind][key_of(old)]
        del self._locations[uid_of(old)]
        gone = with_meta(old, resourceVersion=str(self.revision))
        self._publish(Event(kind, gone, None, self.revision))
        return gone

    def _with_name(self, kind: Kind, obj: Object) -> Object:
        metadata: Object = encoded(meta(obj), "metadata")
        if not metadata.get("name") and metadata.get("generateName"):
            metadata = {**metadata, "name": self._free_name(kind, metadata)}
        if kind.namespaced:
            if not metadata.get("namespace"):
                message = "an empty namespace may not be set during creation"
                raise InvalidError(message, "metadata.namespace")
        else:
            metadata.pop("namespace", None)
        metadata.pop("resourceVersion", None)
        return {**obj, "metadata": metadata}

    def _free_name(self, kind: Kind, metadata: Object) -> str:
        names = (f"{metadata['generateName']}{number:05d}" for number in self._generated)
        space = metadata.get("namespace", "") if kind.namespaced else ""
        return next(name for name in names if (space, name) not in self._objects.get(kind, {}))

    def _get_for_update(self, kind: Kind, obj: Object) -> Object:
        old = self.get(kind, *key_of(obj))
        version = version_of(obj)
        # Updates of custom resources need a resourceVersion; most built-in kinds can be updated
        # without one (AllowUnconditionalUpdate of their strategies).
        if not version and kind.custom:
            message = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
            raise InvalidError(message, "metadata.resourceVersion")
        if (version and version != version_of(old)) or uid_of(obj) not in ("", uid_of(old)):
            raise ConflictError(
                f'Operation cannot be fulfilled on {kind.plural} "{name_of(obj)}": the object has '
                "been modified; please apply your changes to the latest version and try again"
            )
        return old

    def _server_fields(self, obj: Object, old: Object) -> Object:
        metadata: Object = encoded(meta(obj), "metadata")
        for field in SYSTEM_FIELDS:
            metadata.pop(field, None)
            if field in meta(old):
                metadata[field] = meta(old)[field]
        return metadata

    def _replace(
        self, kind: Kind, old: Object, new: Object, *, deletion_grace: int | None = None
    ) -> Object:
        if deletion_grace is not None:
            new = with_meta(
                new,
                deletionTimestamp=self.clock.timestamp(self.clock.now + deletion_grace),
                deletionGracePeriodSeconds=deletion_grace,
            )
        elif deep_equal(new, old):
            return old
        grace = int(meta(new).get("deletionGracePeriodSeconds", 0))
        if is_terminating(new) and not finalizers_of(new) and not grace and kind is not NAMESPACE:
            return self.remove(kind, new)
        return self._commit(kind, old, new)

    def _commit(self, kind: Kind, old: Object | None, new: Object) -> Object:
        self.revision += 1
        new = with_meta(new, resourceVersion=str(self.revision))
        self._objects.setdefault(kind, {})[key_of(new)] = new
        self._locations[uid_of(new)] = kind, key_of(new)
        self._publish(Event(kind, old, new, self.revision))
        return new

    def _publish(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)


def _has_same_content(new: Object, old: Object) -> bool:
    def content(obj: Object) -> dict[str, Json]:
        return {key: value for key, value in obj.items() if key not in ("metadata", "status")}

    return deep_equal(content(new), content(old))
