"""Volumes with real contents: directories of the node, bound by a class without a provisioner."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.kube import Json, Kube

CLASS = "e2e-real"


class Volumes:
    """The volumes of one test. `read` returns the files that containers wrote."""

    def __init__(self, kube: Kube, namespace: str, directory: Path) -> None:
        self._kube = kube
        self._namespace = namespace
        self._directory = directory / namespace
        self._names: list[str] = []

    def make(self, count: int) -> None:
        """Creates volumes for the first claims of this namespace."""
        self._kube.apply(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": CLASS},
                "provisioner": "kubernetes.io/no-provisioner",
            }
        )
        for number in range(count):
            name = f"{self._namespace}-{number}"
            place = self._directory / name
            place.mkdir(parents=True)
            spec = {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": CLASS,
                "persistentVolumeReclaimPolicy": "Retain",
                "hostPath": {"path": str(place), "type": "Directory"},
            }
            metadata = {"name": name}
            self._kube.create(
                {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}
            )
            self._names.append(name)

    def remove(self) -> None:
        """Deletes the volumes; their directories go with the directory of the run."""
        for name in self._names:
            self._kube.delete("v1", "persistentvolumes", None, name)

    def read(self, claim: str, file: str) -> list[str]:
        """Returns the lines of a file in the claim's volume."""
        found: Json = self._kube.get("v1", "persistentvolumeclaims", self._namespace, claim)
        return (self._directory / found["spec"]["volumeName"] / file).read_text().split()
