"""The TApp that the benchmark's pods belong to."""

from typing import Any

Document = dict[str, Any]

NAME, NAMESPACE, UID = "web", "shop", "6f0f8b8e-6d0c-4a51-9a5d-0c5a4f3c2b11"
OLD, NEW = "registry.example.com/shop/web:1.4.2", "registry.example.com/shop/web:1.5.0"


def tapp(replicas: int, image: str) -> Document:
    """The parent: one template of an ordinary web service, 10% maxUnavailable."""
    container = {
        "name": "web",
        "image": image,
        "args": ["--listen", ":8080", "--log-format", "json"],
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "REGION", "value": "eu-central-1"},
            {"name": "DATABASE_URL", "valueFrom": {"secretKeyRef": {"name": "db", "key": "url"}}},
        ],
        "resources": {
            "requests": {"cpu": "250m", "memory": "256Mi"},
            "limits": {"cpu": "1", "memory": "512Mi"},
        },
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 5},
        "livenessProbe": {"httpGet": {"path": "/live", "port": 8080}, "initialDelaySeconds": 10},
        "volumeMounts": [{"name": "cache", "mountPath": "/var/cache/web"}],
        "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True},
    }
    template = {
        "metadata": {
            "labels": {"app": NAME, "team": "shop"},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
        },
        "spec": {
            "containers": [container],
            "volumes": [{"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}}],
            "terminationGracePeriodSeconds": 30,
            "serviceAccountName": NAME,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 1000},
        },
    }
    spec: Document = {
        "replicas": replicas,
        "serviceName": NAME,
        "template": template,
        "updateStrategy": {"maxUnavailable": "10%"},
    }
    return {
        "apiVersion": "apps.tkestack.io/v1",
        "kind": "TApp",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "uid": UID,
            "generation": 7,
            "resourceVersion": "48211",
            "creationTimestamp": "2026-03-01T08:00:00Z",
            "finalizers": ["metacontroller.io/compositecontroller-tapp-controller"],
            "managedFields": [{"manager": "kubectl", "time": "2026-03-01T08:00:00Z"}],
        },
        "spec": spec,
    }
