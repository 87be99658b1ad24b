"""A fake volume provisioner: claims of the default storage class get a volume, and lose it.

Without it every claim stays Pending, and the scheduler leaves pods with claims alone.
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
}


class Provisioner:
    """Makes a volume for every claim of its class; removes a volume whose claim is gone."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kube = Kube(kubeconfig, user_agent="tapp-e2e-provisioner")
        self._claims = Informer(self._kube, "/api/v1/persistentvolumeclaims", self._claim)
        self._volumes = Informer(self._kube, "/api/v1/persistentvolumes", self._volume)
        self._senders = ThreadPoolExecutor(2, "provisioner")

    def start(self) -> Provisioner:
        """Makes the default storage class and serves it from now on."""
        self._kube.apply(STORAGE_CLASS)
        self._claims.start()
        self._volumes.start()
        return self

    def stop(self) -> None:
        """Stops; volumes stay."""
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
        mine = spec.get("storageClassName") == STORAGE_CLASS["metadata"]["name"]
        if mine and change != "DELETED" and not spec.get("volumeName"):
            self._senders.submit(self._provide, claim)

    def _provide(self, claim: Json) -> None:
        meta, spec = claim["metadata"], claim["spec"]
        reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        reference |= {key: meta[key] for key in ("namespace", "name", "uid")}
        volume = {
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
                "storageClassName": STORAGE_CLASS["metadata"]["name"],
                "persistentVolumeReclaimPolicy": "Delete",
                "claimRef": reference,
                "hostPath": {"path": f"/nonexistent/{meta['uid']}"},
            },
        }
        # Already there: the claim was seen twice. Away: the next list of claims comes again.
        with contextlib.suppress(KubeError, OSError, HTTPError):
            self._kube.create(volume)

    def _volume(self, change: str, volume: Json) -> None:
        by = (volume["metadata"].get("annotations") or {}).get("pv.kubernetes.io/provisioned-by")
        released = (volume.get("status") or {}).get("phase") == "Released"
        if change != "DELETED" and by == PROVISIONER and released:
            self._senders.submit(self._remove, volume["metadata"]["name"])

    def _remove(self, name: str) -> None:
        with contextlib.suppress(KubeError, OSError, HTTPError):
            self._kube.delete("v1", "persistentvolumes", None, name)
