"""Pod templates of many shapes, which the API server's defaults and admission change in different
ways.
"""

from __future__ import annotations

import copy
from typing import Any

Json = dict[str, Any]

SIDE: Json = {"name": "side", "image": "side:1"}
MAIN: Json = {"name": "main", "image": "app:1"}


def with_main(*, others: list[Json] | None = None, **container: Any) -> Json:
    """Returns a pod spec whose main container has these fields."""
    return {"containers": [MAIN | container, *(others or [])]}


PROBE: Json = {"httpGet": {"port": 8080}, "periodSeconds": 5}

SHAPES: dict[str, Json] = {
    "plain": with_main(),
    "two containers": with_main(others=[SIDE]),
    "commands": with_main(
        command=["sh", "-c"],
        args=["sleep 1"],
        workingDir="/srv",
        env=[
            {"name": "A", "value": ""},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "B", "value": "b"},
        ],
        envFrom=[{"configMapRef": {"name": "settings", "optional": True}}],
    ),
    "quantities": with_main(
        resources={
            "requests": {"cpu": "0.5", "memory": "1024Mi"},
            "limits": {"cpu": "1000m", "memory": "2Gi", "ephemeral-storage": "1e9"},
        }
    ),
    "limits only": with_main(resources={"limits": {"cpu": 1, "memory": "64Mi"}}),
    "ports": with_main(
        ports=[{"containerPort": 80, "name": "http"}, {"containerPort": 443, "protocol": "TCP"}]
    ),
    "one port twice": with_main(
        ports=[{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53, "protocol": "TCP"}]
    ),
    "env twice": with_main(
        env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "A", "value": "3"}]
    ),
    "probes": with_main(
        livenessProbe=PROBE,
        startupProbe={"exec": {"command": ["true"]}, "failureThreshold": 3},
        lifecycle={"preStop": {"exec": {"command": ["true"]}}},
    ),
    "security": with_main(
        securityContext={
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        }
    )
    | {"securityContext": {"fsGroup": 2000, "supplementalGroups": [1, 2]}},
    "volumes": with_main(
        volumeMounts=[
            {"name": "scratch", "mountPath": "/scratch"},
            {"name": "conf", "mountPath": "/conf", "readOnly": True},
            {"name": "all", "mountPath": "/all"},
        ]
    )
    | {
        "volumes": [
            {"name": "scratch", "emptyDir": {"sizeLimit": "1024Mi"}},
            {"name": "empty", "emptyDir": {}},
            {
                "name": "conf",
                "configMap": {"name": "c", "items": [{"key": "a", "path": "a"}], "optional": True},
            },
            {"name": "secret", "secret": {"secretName": "s", "optional": True}},
            {
                "name": "all",
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"path": "token", "audience": "vault"}},
                        {
                            "downwardAPI": {
                                "items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]
                            }
                        },
                    ]
                },
            },
            {"name": "host", "hostPath": {"path": "/tmp"}},
        ]
    },
    "tolerations": with_main()
    | {"tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}]},
    "tolerates all": with_main() | {"tolerations": [{"operator": "Exists"}]},
    "empty lists": with_main(env=[], ports=[], command=[], resources={})
    | {"tolerations": [], "volumes": [], "imagePullSecrets": [], "nodeSelector": {}},
    "zeros": with_main(stdin=False, env=[{"name": "A", "value": "1"}, {"name": "B"}])
    | {"hostNetwork": False, "affinity": {}, "terminationGracePeriodSeconds": 0},
    "spread": with_main()
    | {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "x"}},
            }
        ],
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 1,
                        "podAffinityTerm": {
                            "topologyKey": "kubernetes.io/hostname",
                            "labelSelector": {"matchLabels": {"app": "x"}},
                        },
                    }
                ]
            }
        },
    },
    "match label keys": with_main()
    | {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "x"}},
                "matchLabelKeys": ["tier"],
            }
        ]
    },
    "init": with_main() | {"initContainers": [{"name": "prepare", "image": "side:1"}]},
    "sidecar": with_main()
    | {"initContainers": [{"name": "mesh", "image": "side:1", "restartPolicy": "Always"}]},
    "host network": with_main() | {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"},
    "identity": with_main()
    | {
        "serviceAccountName": "default",
        "automountServiceAccountToken": False,
        "imagePullSecrets": [{"name": "registry"}],
        "hostAliases": [{"ip": "10.1.2.3", "hostnames": ["db"]}],
        "enableServiceLinks": False,
        "priorityClassName": "",
    },
    "never": with_main() | {"restartPolicy": "Never"},
    "on failure": with_main(others=[SIDE]) | {"restartPolicy": "OnFailure"},
}


def pod_template(app: str, image: str, shape: Json) -> Json:
    """Returns a template of this shape with this image in its first container."""
    spec = copy.deepcopy(shape)
    spec["containers"][0]["image"] = image
    return {"metadata": {"labels": {"app": app}}, "spec": spec}
