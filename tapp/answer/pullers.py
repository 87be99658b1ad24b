"""The pod that pulls images on a node, and runs nothing of them."""

from collections.abc import Mapping
from typing import Any

from tapp.decide.pulls import Puller
from tapp.declared.model import TApp
from tapp.words.vocabulary import PULLER


def new_puller(tapp: TApp, puller: Puller, image: str) -> dict[str, Any]:
    """The pod of a puller, in which `image` runs, and waits (`Options.puller_image`).

    It is of Pod Security's level "restricted", names what a quota or a policy may ask for, and has
    its template's credentials for the registry: its pull secrets, those of its service account. The
    user is its image's (`pause`: 65535), unless the template has one: some clusters give out ids.
    """
    given = {
        key: puller.template.spec[key]
        for key in ("imagePullSecrets", "serviceAccountName")
        if key in puller.template.spec
    }
    container = {
        "name": "wait",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": _resources(puller.template.spec),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [
            {"name": f"image-{number}", "mountPath": f"/images/{number}", "readOnly": True}
            for number in range(len(puller.images))
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": puller.name,
            "namespace": tapp.metadata.namespace,
            "labels": {PULLER: "true"},
        },
        "spec": {
            "nodeName": puller.node,
            # A node with Windows would start it, and never be done.
            "nodeSelector": {
                _OS: (puller.template.spec.get("nodeSelector") or {}).get(_OS, "linux")
            },
            "restartPolicy": "OnFailure",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 1,
            "tolerations": [{"operator": "Exists"}],
            "securityContext": {
                "runAsNonRoot": True,
                **_user(puller.template.spec),
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [
                {
                    "name": f"image-{number}",
                    "image": {"reference": name, **({"pullPolicy": policy} if policy else {})},
                }
                for number, (name, policy) in enumerate(puller.images.items())
            ],
            **given,
        },
    }


def _resources(spec: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Little: enough for a runtime to start a container that waits.

    Of ephemeral storage only where the template names it: not every node has any to give.
    """
    named = [
        kind
        for container in spec.get("containers", [])
        for kinds in (container.get("resources") or {}).values()
        if isinstance(kinds, Mapping)
        for kind in kinds
    ]
    more = {_STORAGE: "16Mi"} if _STORAGE in named else {}
    return {
        "requests": {"cpu": "10m", "memory": "16Mi", **more},
        "limits": {"cpu": "100m", "memory": "32Mi", **more},
    }


_STORAGE = "ephemeral-storage"
_OS = "kubernetes.io/os"


def _user(spec: Mapping[str, Any]) -> dict[str, int]:
    """The template's own user, where it is not root."""
    user = (spec.get("securityContext") or {}).get("runAsUser")
    return {"runAsUser": user} if isinstance(user, int) and user > 0 else {}
