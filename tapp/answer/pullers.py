"""The manifests of pullers: pods that pull the images of an update on a node before the update.

A puller runs only a pause container, and nothing of the images that it pulls. It mounts the images
as volumes, so the kubelet pulls them. `tapp/decide/pulls.py` decides which pullers are needed.
"""

from collections.abc import Mapping
from typing import Any

from tapp.decide.pulls import Puller
from tapp.declared.model import TApp
from tapp.words.vocabulary import PULLER


def new_puller(tapp: TApp, puller: Puller, image: str) -> dict[str, Any]:
    """Returns the manifest of a puller: a pod that pulls the images of an update on a node.

    The puller satisfies the level "restricted" of Pod Security, and has the resources that quotas
    or policies may require. It pulls with the credentials of the template: pull secrets and service
    account. It runs as the user that the template sets, because some clusters assign user ids. If
    the template sets none, it runs as the user of its own image (`pause`: 65535).

    Args:
        tapp: the TApp.
        puller: the node, the images to pull, and the template with the credentials.
        image: the image of the puller's only container, which does nothing
            (`Options.puller_image`).
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
            # On a Windows node the puller would never start.
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
    """Returns the resources of the puller's container, which only waits.

    Ephemeral storage is included only if a container of the template has it, because not every node
    offers it. `spec` is the pod spec of the template.
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
    """Returns the field `runAsUser` of the template, as a map of one entry.

    Returns an empty map if the template does not set the field, or sets it to root. `spec` is the
    pod spec of the template.
    """
    user = (spec.get("securityContext") or {}).get("runAsUser")
    return {"runAsUser": user} if isinstance(user, int) and user > 0 else {}
