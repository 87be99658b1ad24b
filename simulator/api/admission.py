"""Admission: changes and checks of an object between the request and the store.

Pods: defaults, the admission plugins every cluster runs (ServiceAccount, Priority,
DefaultTolerationSeconds), then the *policies* a test plugs in. Claims: defaults, the default
StorageClass where there is one, the protection finalizer, and whether they may grow. Sources:
kube-apiserver's plugins.

A policy is a callable `(operation, object) -> object`; operation is "CREATE" or "UPDATE". It must
return a new object rather than change the one it got.
"""

import random
import re
from collections.abc import Callable, Iterable
from typing import Literal

from simulator.api.apply import LAST_APPLIED
from simulator.api.defaults import default_service_spec
from simulator.api.store import ForbiddenError
from simulator.api.validation import storage_of
from simulator.objects.objects import (
    Object,
    annotations_of,
    finalizers_of,
    meta,
    name_of,
    owners_of,
    with_meta,
)
from tapp.kube.resources import compare, with_pod_limits
from tapp.kube.resources import quality_of as quality
from tapp.kube.stored import admitted_spec, stored_claim, stored_spec
from tapp.kube.tolerations import SECONDS, with_defaults

Operation = Literal["CREATE", "UPDATE"]
Policy = Callable[[Operation, Object], Object]

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_NOT_RESIZABLE = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc "
    "must support resize"
)
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105
_GATED = ("evictionResponders", "schedulingGroup")  # Dropped by the server: gates off by default
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def _token_volume(name: str) -> Object:
    namespace = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    certificate = {"key": "ca.crt", "path": "ca.crt"}
    return {
        "name": name,
        "projected": {
            "defaultMode": 420,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"items": [certificate], "name": "kube-root-ca.crt"}},
                {"downwardAPI": {"items": [{**namespace, "path": "namespace"}]}},
            ],
        },
    }


def _add_service_account(spec: Object, suffix: str) -> Object:
    if spec.get("automountServiceAccountToken") is False:
        return spec
    volume = f"kube-api-access-{suffix}"
    mount = {"mountPath": TOKEN_PATH, "name": volume, "readOnly": True}
    used = False
    for field in ("initContainers", "containers"):
        containers = []
        for container in spec.get(field) or []:
            mounts = container.get("volumeMounts") or []
            if all(other.get("mountPath") != TOKEN_PATH for other in mounts):
                container = {**container, "volumeMounts": [*mounts, mount]}  # noqa: PLW2901
                used = True
            containers.append(container)
        if containers:
            spec[field] = containers
    if used:
        spec["volumes"] = [*(spec.get("volumes") or []), _token_volume(volume)]
    return spec


def _with_tolerations(spec: Object) -> Object:
    return {**spec, "tolerations": with_defaults(spec.get("tolerations") or [], SECONDS)}


def _class_of(claim: Object) -> str:
    older: str | None = annotations_of(claim).get(OLD_CLASS)
    return claim["spec"].get("storageClassName") or "" if older is None else older


def _forbidden(claim: Object, reason: str) -> ForbiddenError:
    return ForbiddenError(f'persistentvolumeclaims "{name_of(claim)}" is forbidden: {reason}')


class Admission:
    """The admission chain of one cluster."""

    def __init__(self, rng: random.Random, policies: tuple[Policy, ...] = ()) -> None:
        self._rng = rng
        self.policies = list(policies)
        self.adds_pod_limits = True
        """True if a pod's own resources are completed, as since Kubernetes 1.37."""

    def pod_create(self, pod: Object) -> Object:
        """Return the pod as it is stored when created."""
        given = pod.get("spec") or {}
        spec = stored_spec({key: each for key, each in given.items() if key not in _GATED})
        suffix = "".join(self._rng.choices(_SUFFIX_LETTERS, k=5))
        spec = _with_tolerations(_add_service_account(admitted_spec(spec), suffix))
        pod = self._policies("CREATE", {**pod, "spec": spec})
        if self.adds_pod_limits:
            pod = {**pod, "spec": with_pod_limits(pod["spec"])}
        return {**pod, "status": {"phase": "Pending", "qosClass": quality(pod["spec"])}}

    def pod_update(self, pod: Object) -> Object:
        """Return the pod as the API server reads it from an update."""
        spec = stored_spec(pod.get("spec") or {})
        return self._policies("UPDATE", {**pod, "spec": _with_tolerations(spec)})

    def claim_create(self, claim: Object, classes: Iterable[Object] = ()) -> Object:
        """Return the claim as it is stored when created, where there are these StorageClasses."""
        spec = stored_claim(claim.get("spec") or {})
        if "storageClassName" not in spec and OLD_CLASS not in annotations_of(claim):
            marks = {name_of(each): annotations_of(each).get(DEFAULT_CLASS) for each in classes}
            if defaults := [name for name, mark in marks.items() if mark == "true"]:
                spec["storageClassName"] = defaults[0]
        if CLAIM_PROTECTION not in finalizers_of(claim):
            claim = with_meta(claim, finalizers=[*finalizers_of(claim), CLAIM_PROTECTION])
        return self._policies("CREATE", {**claim, "spec": spec, "status": {"phase": "Pending"}})

    def claim_update(self, claim: Object) -> Object:
        """Return the claim as the API server reads it from an update."""
        spec = stored_claim(claim.get("spec") or {})
        return self._policies("UPDATE", {**claim, "spec": spec})

    def service_create(self, service: Object) -> Object:
        """Return the Service as it is stored when created."""
        spec = default_service_spec(service.get("spec") or {}, self._rng)
        return self._policies("CREATE", {**service, "spec": spec, "status": {"loadBalancer": {}}})

    def service_update(self, new: Object, old: Object) -> Object:
        """Return the Service as the API server reads it from an update."""
        given = new.get("spec") or {}
        kept = {key: old["spec"][key] for key in ("clusterIP", "clusterIPs") if key in old["spec"]}
        spec = default_service_spec({**kept, **given}, self._rng)
        return self._policies("UPDATE", {**new, "spec": spec})

    def revision_create(self, revision: Object) -> Object:
        """Return the ControllerRevision as it is stored when created."""
        return self._policies("CREATE", {"revision": 0, **revision})

    @staticmethod
    def check_claim_resize(new: Object, old: Object, classes: Iterable[Object]) -> None:
        """Refuse a claim's growth that its StorageClass does not allow.

        Source: plugin/pkg/admission/storage/persistentvolume/resize (PersistentVolumeClaimResize).
        """
        if compare(storage_of(new), storage_of(old)) <= 0:
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            raise _forbidden(new, "Only bound persistent volume claims can be expanded")
        name = _class_of(new)
        allowing = {name_of(each) for each in classes if each.get("allowVolumeExpansion") is True}
        if not name or name != _class_of(old) or name not in allowing:
            raise _forbidden(new, _NOT_RESIZABLE)

    def _policies(self, operation: Operation, obj: Object) -> Object:
        for policy in self.policies:
            changed = policy(operation, obj)
            if changed is not obj and changed["kind"] == "Pod":
                changed = {**changed, "spec": stored_spec(changed["spec"])}
            obj = changed
        return obj


_STRING = r'"(?:[^"\\]|\\.)*"'
_HEAD = re.compile(
    r'\{"apiVersion":"v1","kind":"Pod","metadata":'
    rf'\{{(?:{_STRING}|[:,\[\]]|\{{(?:{_STRING}|[:,])*\}})*\}}(?=,"spec":\{{.*\}}\}}$)'
)


def lean_pods(operation: Operation, obj: Object) -> Object:
    """Policy: what `metacontroller/components/admission-policies/lean-pods.yaml` does to pods.

    The spec is cut out of Metacontroller's annotation at every write. A new pod gets an empty list
    of managedFields: the API server then tracks nobody (and shows none; here the list stays).
    """
    owned = any(owner["kind"] == "TApp" for owner in owners_of(obj))
    text = annotations_of(obj).get(LAST_APPLIED, "")
    if obj["kind"] != "Pod" or not owned or ',"spec":{' not in text:
        return obj
    head = _HEAD.match(text)
    if head is not None:
        text = head.group() + "}"
        obj = with_meta(obj, annotations={**annotations_of(obj), LAST_APPLIED: text})
    if operation == "UPDATE":
        return obj
    return {**obj, "metadata": {**meta(obj), "managedFields": []}}
