"""The new pod of an instance, and the size of its annotations as the API server stores them.

`NewPods.of` builds the pod. `NewPods.annotation_bytes` computes the size without building the pod.
Most of the bytes are Metacontroller's copy of the pod, and a template knows the size of its own
part of that copy (`Bulk`).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from tapp.decide.instances import Instance
from tapp.declared.model import TApp
from tapp.declared.templates import Template
from tapp.kube.env import without_repeats
from tapp.kube.limits import bytes_of, length_in_go
from tapp.kube.tolerations import of_pods
from tapp.words.vocabulary import (
    CONTROLLER_UID,
    FAILURES,
    INSTANCE,
    LAST_APPLIED,
    POD_INDEX,
    POD_STATUS,
    TEMPLATE_HASH,
    TEMPLATE_IMAGES,
    UNIQ_HASH,
    WRITTEN,
)

Document = dict[str, Any]

_IDENTITY: Final = {"apiVersion": "v1", "kind": "Pod"}


class NewPods:
    """Builds new pods of one TApp, and computes the size of their annotations.

    `toleration_seconds` are the seconds for which the cluster's pods tolerate a node that does not
    report, if their spec does not set another time.
    """

    def __init__(self, tapp: TApp, toleration_seconds: int) -> None:
        self._tapp, self._seconds = tapp, toleration_seconds

    def of(self, instance: Instance, template: Template, volumes: Mapping[str, str]) -> Document:
        """Returns the new pod of an instance as JSON.

        Args:
            instance: the instance.
            template: the template of the pod.
            volumes: volume name -> claim name. A claim takes precedence over the template's volume
                of the same name.
        """
        spec = template.spec
        spec = {**spec, **self._own(instance, spec)}
        if volumes:
            others = [each for each in spec.get("volumes", []) if each["name"] not in volumes]
            spec["volumes"] = others + _of_claims(volumes)
        # Metacontroller merges `env` by name, and cannot apply a list with a repeated name.
        for section in ("containers", "initContainers"):
            if section in spec:
                spec[section] = without_repeats(spec[section])
        return {**_IDENTITY, "metadata": self._metadata(instance, template), "spec": spec}

    def annotation_bytes(
        self, instance: Instance, template: Template, volumes: Mapping[str, str], *, cut: bool
    ) -> int:
        """Returns the size in bytes of all annotations of an instance's new pod.

        The size is exact for a template whose parts are measured (`Bulk.is_small` is False).

        Args:
            instance: the instance.
            template: the template of the pod.
            volumes: volume name -> claim name.
            cut: True if an admission policy removes the spec from Metacontroller's copy of the pod.
        """
        metadata = self._metadata(instance, template)
        annotations = bytes_of(metadata["annotations"]) + len(LAST_APPLIED)
        # Metacontroller adds its label before it makes the copy.
        metadata["labels"] |= {CONTROLLER_UID: self._tapp.metadata.uid}
        copy = length_in_go({**_IDENTITY, "metadata": metadata})
        if cut:
            return annotations + copy
        bulk = template.bulk
        volumes_bytes = _joined([bulk.volumes, length_in_go(_of_claims(volumes)) - 2])
        parts = [bulk.fields, length_in_go(self._own(instance, bulk.others, whole=True)) - 2]
        parts += [len('"volumes":[]') + volumes_bytes] if volumes_bytes else []
        return annotations + copy + len(',"spec":{}') + _joined(parts)

    def _metadata(self, instance: Instance, template: Template) -> Document:
        """Returns the metadata of an instance's new pod, as this service requests it.

        Metacontroller adds another label.
        """
        metadata: Document = {
            "name": f"{self._tapp.metadata.name}-{instance.id}",
            "namespace": self._tapp.metadata.namespace,
            "labels": labels_of(template, instance.id),
            "annotations": {**template.annotations, **own_annotations(template)},
        }
        # The status forgets the number as soon as a pod has it (`tapp/pod/pace.py`).
        if failures := self._tapp.status.failures.get(str(instance.id), 0):
            metadata["annotations"][FAILURES] = str(failures)
        if template.finalizers:
            metadata["finalizers"] = template.finalizers
        return metadata

    def _own(self, instance: Instance, spec: Mapping[str, Any], *, whole: bool = False) -> Document:
        """Returns the fields of the pod spec that differ between pods of one template.

        These are the host name, the Service and the tolerations. If the template has tolerations,
        the two that admission adds to every pod are included. Without them the list would differ
        from the stored one, and Metacontroller would see a change.

        Args:
            instance: the instance.
            spec: the pod spec of its template.
            whole: True to include all other fields of `spec`, too.
        """
        found = dict(spec) if whole else {}
        # The DNS name of a pod needs both fields, and the Service of the second one.
        if instance.service_name:
            found["hostname"] = f"{self._tapp.metadata.name}-{instance.id}"
            found["subdomain"] = instance.service_name
        tolerations, moved = spec.get("tolerations") or [], self._tapp.spec.force_delete_pod
        if moved or tolerations:
            found["tolerations"] = of_pods(tolerations, self._seconds, moved=moved)
        return found


def _joined(parts: Iterable[int]) -> int:
    """Returns the length of a JSON list's or object's content, with the commas between its entries.

    `parts` has the lengths of the entries; an entry of length 0 does not exist and has no comma.
    """
    # An empty part has no comma, so it does not count as an entry.
    lengths = [part for part in parts if part > 0]
    return sum(lengths) + max(0, len(lengths) - 1)


def _of_claims(volumes: Mapping[str, str]) -> list[Document]:
    """Returns the volumes of a pod spec that mount these claims.

    `volumes` maps the name of a volume to the name of its claim.
    """
    return [
        {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
        for volume, claim in volumes.items()
    ]


def labels_of(template: Template, instance: int) -> dict[str, str]:
    """Returns the labels of an instance's pod, without the label that Metacontroller adds.

    `instance` is the number of the instance.
    """
    return {
        **template.labels,
        INSTANCE: str(instance),
        POD_INDEX: str(instance),
        TEMPLATE_HASH: template.revision,
        UNIQ_HASH: template.uniq,
        **({POD_STATUS: "true"} if template.watched else {}),
    }


def own_annotations(template: Template) -> dict[str, str]:
    """Returns the annotations with which this service records the template of a pod on the pod.

    They are the images of the template and, if the template had placeholders, the revision of the
    template as written. Later syncs read them.
    """
    found = {TEMPLATE_IMAGES: _json(template.images)}
    if template.origin is not None:
        found[WRITTEN] = template.origin.encode()
    return found


def _json(value: Any) -> str:
    """Returns a value as compact JSON with sorted keys."""
    return msgspec.json.encode(value, order="sorted").decode()
