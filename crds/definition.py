"""The CustomResourceDefinition of TApp: its names, subresources and printer columns.

`custom_resource_definition` is the entry point; the schema comes from `crds.schema`.
"""

from typing import Any, Final

from crds.kubernetes_schema import Schema
from crds.schema import tapp_schema


def _column(name: str, kind: str, path: str, description: str, priority: int = 0) -> Schema:
    column: Schema = {"name": name, "type": kind, "jsonPath": path, "description": description}
    return column | ({"priority": priority} if priority else {})


COLUMNS: Final = [
    _column("Ready", "string", ".status.ready", "Ready pods, of the instances that should run"),
    _column("Updated", "integer", ".status.updatedReplicas", "Pods at the latest revision"),
    _column("Available", "integer", ".status.availableReplicas", "Pods that are available"),
    _column(
        "Reason",
        "string",
        '.status.conditions[?(@.type=="Ready")].reason',
        "AsSpecified, or why not every instance is as the spec asks",
    ),
    _column("Age", "date", ".metadata.creationTimestamp", "Time since creation"),
    _column("Status", "string", ".status.appStatus", "Status of the whole app", 1),
]


def custom_resource_definition() -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "tapps.apps.tkestack.io",
            "labels": {"app.kubernetes.io/part-of": "tapp"},
            # Argo CD then uses server-side apply, as the README does. A client-side apply would
            # store a copy of the whole CRD in an annotation.
            "annotations": {
                "argocd.argoproj.io/sync-options": "ServerSideApply=true",
                # Deleting the CRD would delete all TApps and their pods, so Helm must keep it.
                "helm.sh/resource-policy": "keep",
            },
        },
        "spec": {
            "group": "apps.tkestack.io",
            "scope": "Namespaced",
            "names": {
                "kind": "TApp",
                "listKind": "TAppList",
                "plural": "tapps",
                "singular": "tapp",
                "shortNames": ["ta"],
                "categories": ["all"],
            },
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": COLUMNS,
                    "subresources": {
                        "status": {},
                        "scale": {
                            "specReplicasPath": ".spec.replicas",
                            "statusReplicasPath": ".status.replicas",
                            "labelSelectorPath": ".status.scaleLabelSelector",
                        },
                    },
                    "schema": {"openAPIV3Schema": tapp_schema()},
                }
            ],
        },
    }
