"""Admission: how the API server changes and checks an object before it stores the object.

`Admission` has one method for each kind and operation. Pods get defaults, and pass the admission
plugins of every cluster (ServiceAccount, Priority, DefaultTolerationSeconds). They then pass the
*policies* of a test. Claims get defaults, the default StorageClass and the protection finalizer.
Claims may only grow if their StorageClass allows expansion. Source: Kubernetes v1.37.2,
plugin/pkg/admission.

A policy is a callable `(operation, object) -> object` with the operation "CREATE" or "UPDATE". It
must return a new object instead of changing its argument.
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
from tapp.kube.resources import pod_qos_class as qos_class
from tapp.kube.stored import admitted_spec, stored_claim, stored_spec
from tapp.kube.tolerations import SECONDS, with_defaults

Operation = Literal["CREATE", "UPDATE"]
Policy = Callable[[Operation, Object], Object]

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
OLD_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_NOT_RESIZABLE = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc "
    "must support resize"
)
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105
_FIELDS_OF_DISABLED_GATES = ("evictionResponders", "schedulingGroup")
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


def _storage_class_of(claim: Object) -> str:
    older: str | None = annotations_of(claim).get(OLD_CLASS_ANNOTATION)
    return claim["spec"].get("storageClassName") or "" if older is None else older


def _forbidden(claim: Object, reason: str) -> ForbiddenError:
    return ForbiddenError(f'persistentvolumeclaims "{name_of(claim)}" is forbidden: {reason}')


class Admission:
    """The admission chain of one cluster: fills in and checks objects before they are stored.

    `policies` are callables that change or refuse objects after the built-in steps, in their order,
    as admission policies of a real cluster do. `rng` chooses the random parts of names and
    addresses.
    """

    def __init__(self, rng: random.Random, policies: tuple[Policy, ...] = ()) -> None:
        self._rng = rng
        self.policies = list(policies)
        self.adds_pod_limits = True
        """True if the API server completes the pod-level resources, as since Kubernetes 1.37."""

    def pod_create(self, pod: Object) -> Object:
        """Returns a new pod as the API server stores it.

        The pod gets the default values of its spec, the token volume of its ServiceAccount, the
        default tolerations, and the changes of the policies. Its status has the phase Pending and
        the QoS class.
        """
        given = pod.get("spec") or {}
        spec = stored_spec(
            {key: each for key, each in given.items() if key not in _FIELDS_OF_DISABLED_GATES}
        )
        suffix = "".join(self._rng.choices(_SUFFIX_LETTERS, k=5))
        spec = _with_tolerations(_add_service_account(admitted_spec(spec), suffix))
        pod = self._apply_policies("CREATE", {**pod, "spec": spec})
        if self.adds_pod_limits:
            pod = {**pod, "spec": with_pod_limits(pod["spec"])}
        return {**pod, "status": {"phase": "Pending", "qosClass": qos_class(pod["spec"])}}

    def pod_update(self, pod: Object) -> Object:
        """Returns an updated pod with defaults and with the changes of the policies."""
        spec = stored_spec(pod.get("spec") or {})
        return self._apply_policies("UPDATE", {**pod, "spec": _with_tolerations(spec)})

    def claim_create(self, claim: Object, classes: Iterable[Object] = ()) -> Object:
        """Returns a new claim as the API server stores it: with defaults, StorageClass and
        finalizer.

        `classes` are all StorageClasses of the cluster. If the claim names no StorageClass, it gets
        the default StorageClass, if there is one.
        """
        spec = stored_claim(claim.get("spec") or {})
        # A claim with an empty class name, or with the old annotation, gets no default class.
        if "storageClassName" not in spec and OLD_CLASS_ANNOTATION not in annotations_of(claim):
            default_annotations = {
                name_of(each): annotations_of(each).get(DEFAULT_CLASS) for each in classes
            }
            if defaults := [
                name for name, default in default_annotations.items() if default == "true"
            ]:
                spec["storageClassName"] = defaults[0]
        if CLAIM_PROTECTION not in finalizers_of(claim):
            claim = with_meta(claim, finalizers=[*finalizers_of(claim), CLAIM_PROTECTION])
        return self._apply_policies(
            "CREATE", {**claim, "spec": spec, "status": {"phase": "Pending"}}
        )

    def claim_update(self, claim: Object) -> Object:
        """Returns an updated claim with defaults and with the changes of the policies."""
        spec = stored_claim(claim.get("spec") or {})
        return self._apply_policies("UPDATE", {**claim, "spec": spec})

    def service_create(self, service: Object) -> Object:
        """Returns a new Service as the API server stores it: with defaults, cluster IP and node
        ports.
        """
        spec = default_service_spec(service.get("spec") or {}, self._rng)
        return self._apply_policies(
            "CREATE", {**service, "spec": spec, "status": {"loadBalancer": {}}}
        )

    def service_update(self, new: Object, old: Object) -> Object:
        """Returns an updated Service with defaults and with the changes of the policies.

        If the update has no cluster IP, the Service keeps the cluster IP of `old`, the stored
        Service.
        """
        given = new.get("spec") or {}
        # The API server fills in the old address if an update omits it (patchAllocatedValues in
        # pkg/registry/core/service/storage/storage.go).
        kept = {key: old["spec"][key] for key in ("clusterIP", "clusterIPs") if key in old["spec"]}
        spec = default_service_spec({**kept, **given}, self._rng)
        return self._apply_policies("UPDATE", {**new, "spec": spec})

    def revision_create(self, revision: Object) -> Object:
        """Returns a new ControllerRevision as the API server stores it.

        The revision number is 0 if `revision` has none.
        """
        return self._apply_policies("CREATE", {"revision": 0, **revision})

    @staticmethod
    def check_claim_resize(new: Object, old: Object, classes: Iterable[Object]) -> None:
        """Raises ForbiddenError if a claim grows and may not grow.

        A claim may grow if it is bound and its StorageClass allows expansion.

        Args:
            new: the claim as the update would store it.
            old: the stored claim.
            classes: all StorageClasses of the cluster.

        Source: plugin/pkg/admission/storage/persistentvolume/resize (PersistentVolumeClaimResize).
        """
        if compare(storage_of(new), storage_of(old)) <= 0:
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            raise _forbidden(new, "Only bound persistent volume claims can be expanded")
        name = _storage_class_of(new)
        allowing = {name_of(each) for each in classes if each.get("allowVolumeExpansion") is True}
        if not name or name != _storage_class_of(old) or name not in allowing:
            raise _forbidden(new, _NOT_RESIZABLE)

    def _apply_policies(self, operation: Operation, obj: Object) -> Object:
        for policy in self.policies:
            changed = policy(operation, obj)
            if changed is not obj and changed["kind"] == "Pod":
                # The API server applies defaults again to a pod that a policy has changed.
                changed = {**changed, "spec": stored_spec(changed["spec"])}
            obj = changed
        return obj


_STRING = r'"(?:[^"\\]|\\.)*"'
_POD_WITHOUT_SPEC = re.compile(
    r'\{"apiVersion":"v1","kind":"Pod","metadata":'
    rf'\{{(?:{_STRING}|[:,\[\]]|\{{(?:{_STRING}|[:,])*\}})*\}}(?=,"spec":\{{.*\}}\}}$)'
)


def lean_pods(operation: Operation, obj: Object) -> Object:
    """Changes pods of a TApp as metacontroller/components/admission-policies/lean-pods.yaml does.

    The policy removes the pod's spec from Metacontroller's last-applied annotation. When a pod is
    created, the policy also empties `managedFields`. Other objects are returned unchanged.
    """
    owned = any(owner["kind"] == "TApp" for owner in owners_of(obj))
    text = annotations_of(obj).get(LAST_APPLIED, "")
    if obj["kind"] != "Pod" or not owned or ',"spec":{' not in text:
        return obj
    match = _POD_WITHOUT_SPEC.match(text)
    if match is not None:
        text = match.group() + "}"
        obj = with_meta(obj, annotations={**annotations_of(obj), LAST_APPLIED: text})
    if operation == "UPDATE":
        return obj
    return {**obj, "metadata": {**meta(obj), "managedFields": []}}
