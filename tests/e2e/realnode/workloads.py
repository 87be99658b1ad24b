"""Pods and templates for the real node, and the published versions of pods."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from tests.e2e.informer import Informer
from tests.e2e.kube import Json, Kube

from .images import SERVING, STARTED, app
from .kubelet import LABEL

PROBE: Json = {"exec": {"command": ["test", "-f", f"/{SERVING}"]}, "periodSeconds": 1}
"""Succeeds while the process serves, according to its file."""
BOOT: Json = {"exec": {"command": ["test", "-f", f"/{STARTED}"]}, "failureThreshold": 30}
"""Succeeds when the process has started, according to its file; the period is Kubernetes'
default.
"""


def environment(**values: object) -> list[Json]:
    """Returns the `env` of a container."""
    return [{"name": name, "value": str(value)} for name, value in values.items()]


def container(tag: str = "1", name: str = "main", **fields: Any) -> Json:
    """Returns a container with the application's image of this tag.

    `tag` may also be a full image name.
    """
    image = tag if "/" in tag else app(tag)
    return {"name": name, "image": image, "imagePullPolicy": "IfNotPresent", **fields}


def real_spec(*containers: Json, **spec: Any) -> Json:
    """Returns the spec of a pod that runs on the real node in any state of the node."""
    return {
        "hostNetwork": True,
        "nodeSelector": {LABEL: "true"},
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "containers": list(containers) or [container()],
        **spec,
    }


def real_template(*containers: Json | str, **spec: Any) -> Json:
    """Returns a TApp's template for the real node.

    A text stands for a container with that image.
    """
    made = [container(each) if isinstance(each, str) else each for each in containers]
    return {"metadata": {"labels": {"app": "web"}}, "spec": real_spec(*made, **spec)}


def tag_of(image: str) -> str:
    """Returns the tag of an image."""
    return image.rpartition(":")[2]


@dataclass(frozen=True)
class Published:
    """A version of a pod, as a watch showed it."""

    seconds: float
    change: str
    pod: Json

    @property
    def shown(self) -> str:
        """The parts that matter for decisions: generations, Ready, and the image and state of each
        container.
        """
        meta, status = self.pod["metadata"], self.pod.get("status") or {}
        asked = {each["name"]: each["image"] for each in self.pod["spec"]["containers"]}
        ready = [
            each["status"] for each in status.get("conditions") or [] if each["type"] == "Ready"
        ]
        seen = status.get("observedGeneration", 0)
        words = [f"generation {meta.get('generation')} seen {seen}", status.get("phase", "")]
        words += [f"Ready {''.join(ready) or '-'}"]
        for each in status.get("containerStatuses") or []:
            (state, more), *_ = [*(each.get("state") or {}).items(), ("none", {})]
            reason = f" {more['reason']}" if more.get("reason") else ""
            words.append(
                f"{each['name']} wants {tag_of(asked.get(each['name'], ''))} has"
                f" {tag_of(each.get('image', ''))} {state}{reason}"
                f" ready={each['ready']} restarts={each['restartCount']}"
            )
        return ", ".join(words) + (" deleting" if "deletionTimestamp" in meta else "")


class History:
    """All versions of the pods of a namespace in order, from a separate watch."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self.begun = time.monotonic()
        self._seen: list[Published] = []
        self._informer = Informer(kube, kube.path("v1", "pods", namespace), self._heard)

    def start(self) -> History:
        """Starts the watch."""
        self._informer.start()
        return self

    def stop(self) -> None:
        """Stops the watch."""
        self._informer.stop()

    def of(self, name: str) -> list[Published]:
        """Returns the versions of a pod that were published so far."""
        return [each for each in self._seen if each.pod["metadata"]["name"] == name]

    def __str__(self) -> str:
        """Returns the versions of all pods, one line each."""
        return "\n".join(
            f"{each.seconds:7.2f} {each.pod['metadata']['name']}: {each.shown}"
            for each in self._seen
        )

    def _heard(self, change: str, pod: Json) -> None:
        self._seen.append(Published(time.monotonic() - self.begun, change, pod))
