"""The pod that pulls images on a node, and runs nothing of them."""

from typing import Any

from tapp.decide.pulls import Puller
from tapp.spec.model import TApp
from tapp.words.vocabulary import PULLER


def new_puller(tapp: TApp, puller: Puller, image: str) -> dict[str, Any]:
    """The pod of a puller.

    It is of Pod Security's level "restricted", and has the credentials of its template for the
    registry: its pull secrets, and those of its service account.

    Args:
        tapp: the parent.
        puller: what it pulls, and where.
        image: what runs in it, which waits (`Options.puller_image`).
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
            "restartPolicy": "OnFailure",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 1,
            "tolerations": [{"operator": "Exists"}],
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65535,
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
