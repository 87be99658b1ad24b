"""A fake provisioner that creates, expands, modifies and deletes volumes for claims of its classes.

Without the provisioner, all claims stay Pending and the scheduler places no pod with a claim. The
API server alone decides by the StorageClass whether a claim may grow.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from urllib3.exceptions import HTTPError

from .informer import Informer
from .kube import Json, Kube, KubeError

PROVISIONER = "e2e.fake/volumes"
STORAGE_CLASS: Json = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {
        "name": "e2e-fake",
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    },
    "provisioner": PROVISIONER,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
    "allowVolumeExpansion": True,
}
_OURS = STORAGE_CLASS["metadata"]["name"]
"""Prefix of the names of the tests' storage classes."""

CSI_CLASS: Json = {**STORAGE_CLASS, "metadata": {"name": f"{_OURS}-csi"}}
"""A storage class whose volumes are those of a CSI driver. No other volume may have a
VolumeAttributesClass.
"""
_DRIVER = "volumes.e2e.fake"

REFUSED = "e2e-refused"
"""Prefix of the names of VolumeAttributesClasses that the driver refuses."""


def attributes_class(name: str) -> Json:
    """Returns a VolumeAttributesClass of the fake driver."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttributesClass",
        "metadata": {"name": name},
        "driverName": _DRIVER,
        "parameters": {"speed": name},
    }


class Provisioner:
    """Creates and expands a volume for each claim of its classes, and deletes it with the claim."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kube = Kube(kubeconfig, user_agent="tapp-e2e-provisioner")
        self._claims = Informer(self._kube, "/api/v1/persistentvolumeclaims", self._claim)
        self._volumes = Informer(self._kube, "/api/v1/persistentvolumes", self._volume)
        self._senders = ThreadPoolExecutor(2, "provisioner")

    def start(self) -> Provisioner:
        """Creates the default storage class and starts to serve it."""
        self._kube.apply(STORAGE_CLASS)
        self._claims.start()
        self._volumes.start()
        return self

    def stop(self) -> None:
        """Stops serving; volumes stay."""
        self._claims.stop()
        self._volumes.stop()
        self._senders.shutdown(cancel_futures=True)
        self._kube.close()

    def __enter__(self) -> Provisioner:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _claim(self, change: str, claim: Json) -> None:
        spec = claim["spec"]
        if change == "DELETED" or not (spec.get("storageClassName") or "").startswith(_OURS):
            return
        status = claim.get("status") or {}
        if not spec.get("volumeName"):
            self._senders.submit(self._provide, claim)
        elif status.get("phase") == "Bound" and status["capacity"] != spec["resources"]["requests"]:
            self._senders.submit(self._expand, claim)
        wanted = spec.get("volumeAttributesClassName")
        modifying = status.get("modifyVolumeStatus") or {}
        is_new = wanted != status.get("currentVolumeAttributesClassName")
        is_new = is_new and wanted != modifying.get("targetVolumeAttributesClassName")
        if status.get("phase") == "Bound" and wanted and is_new:
            self._senders.submit(self._modify, claim)

    def _provide(self, claim: Json) -> None:
        meta, spec = claim["metadata"], claim["spec"]
        reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        reference |= {key: meta[key] for key in ("namespace", "name", "uid")}
        volume: Json = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {
                "name": f"pvc-{meta['uid']}",
                "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER},
            },
            "spec": {
                "capacity": spec["resources"]["requests"],
                "accessModes": spec["accessModes"],
                "volumeMode": spec.get("volumeMode", "Filesystem"),
                "storageClassName": spec["storageClassName"],
                "persistentVolumeReclaimPolicy": "Delete",
                "claimRef": reference,
                "hostPath": {"path": f"/nonexistent/{meta['uid']}"},
            },
        }
        attributes = spec.get("volumeAttributesClassName")
        if attributes or spec["storageClassName"] == CSI_CLASS["metadata"]["name"]:
            del volume["spec"]["hostPath"]
            volume["spec"]["csi"] = {"driver": _DRIVER, "volumeHandle": meta["uid"]}
        if attributes:
            volume["spec"]["volumeAttributesClassName"] = attributes
        # The volume may exist already. If the API server is down, the next list contains the claim
        # again.
        with contextlib.suppress(KubeError, OSError, HTTPError):
            self._kube.create(volume)

    def _expand(self, claim: Json) -> None:
        """Updates first the volume and then the claim's status, as external-resizer does."""
        size = claim["spec"]["resources"]["requests"]
        volume = self._kube.path("v1", "persistentvolumes", None, claim["spec"]["volumeName"])
        with contextlib.suppress(KubeError, OSError, HTTPError):
            self._kube.patch(volume, {"spec": {"capacity": size}})
            self._kube.patch(self._kube.path_of(claim, "status"), {"status": {"capacity": size}})

    def _modify(self, claim: Json) -> None:
        """Gives a volume the attributes of its class, in the writes of external-resizer.

        It reports `InProgress`, changes the volume, and then reports the class that the volume has.
        It reports `Infeasible` for a class that it refuses, and `Pending` for a missing class.
        """
        wanted = claim["spec"]["volumeAttributesClassName"]
        volume = self._kube.path("v1", "persistentvolumes", None, claim["spec"]["volumeName"])
        path = self._kube.path_of(claim, "status")

        def report(status: str) -> None:
            target = {"targetVolumeAttributesClassName": wanted, "status": status}
            self._kube.patch(path, {"status": {"modifyVolumeStatus": target}})

        with contextlib.suppress(KubeError, OSError, HTTPError):
            try:
                self._kube.get("storage.k8s.io/v1", "volumeattributesclasses", None, wanted)
            except KubeError:
                report("Pending")
                return
            if wanted.startswith(REFUSED):
                report("Infeasible")
                return
            report("InProgress")
            self._kube.patch(volume, {"spec": {"volumeAttributesClassName": wanted}})
            done = {"currentVolumeAttributesClassName": wanted, "modifyVolumeStatus": None}
            self._kube.patch(path, {"status": done})

    def _volume(self, change: str, volume: Json) -> None:
        by = (volume["metadata"].get("annotations") or {}).get("pv.kubernetes.io/provisioned-by")
        released = (volume.get("status") or {}).get("phase") == "Released"
        if change != "DELETED" and by == PROVISIONER and released:
            self._senders.submit(self._remove, volume["metadata"]["name"])

    def _remove(self, name: str) -> None:
        with contextlib.suppress(KubeError, OSError, HTTPError):
            self._kube.delete("v1", "persistentvolumes", None, name)
