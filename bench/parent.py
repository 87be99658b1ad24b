"""The TApp that the benchmark's pods belong to."""

from typing import Any

Document = dict[str, Any]

NAME, NAMESPACE, UID = "web", "shop", "6f0f8b8e-6d0c-4a51-9a5d-0c5a4f3c2b11"
OLD, NEW = "registry.example.com/shop/web:1.4.2", "registry.example.com/shop/web:1.5.0"


def tapp(replicas: int, image: str, templates: int = 1, *, values: bool = False) -> Document:
    """The parent: an ordinary web service, 10% maxUnavailable.

    Instances take the templates in turn; all but the first of them are in the pool. With values
    each instance has one of its own in the first template.
    """
    names = [f"shard-{number}" for number in range(1, templates)]
    pool = {name: _template(f"{image}-{name}", name) for name in names}
    spec: Document = {
        "replicas": replicas,
        "serviceName": NAME,
        "template": _template(image, "eu-central-1"),
        "updateStrategy": {"maxUnavailable": "10%"},
    }
    if values:
        spec["template"] = _template(image, "$(tapp.values.region)")
        spec["values"] = {str(each): {"region": f"region-{each}"} for each in range(replicas)}
    if pool:
        spec["templatePool"] = pool
        spec["templates"] = {
            str(instance): names[instance % templates - 1]
            for instance in range(replicas)
            if instance % templates
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


def _template(image: str, region: str) -> Document:
    container = {
        "name": "web",
        "image": image,
        "args": ["--listen", ":8080", "--log-format", "json"],
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "REGION", "value": region},
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
    return {
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
