"""Builds the requests of a typical web service with any number of instances, for tests of costs.

The pods have a realistic size. `request_in` is the entry point.
"""

from typing import Any

from tests.builders import Document, as_sent, tapp, template
from tests.unit.world import World

OLD, NEW = "registry.example.com/shop/web:1.4.2", "registry.example.com/shop/web:1.5.0"
NOTHING, AFTER_ROLL, ROLL, CREATE, FINALIZE = SITUATIONS = (
    "nothing to do", "nothing to do after a roll", "middle of a roll", "create all", "finalize",
)  # fmt: skip


class Life(World):
    """Simulates a TApp of a typical web service. No pod exists before the first sync."""

    def __init__(self, n: int, templates: int = 1, *, values: bool = False) -> None:
        """Builds a TApp with `n` instances that use `templates` pod templates in turn.

        If `values` is True, each instance has its own text in `spec.values`, which its template
        reads.
        """
        names = [f"shard-{number}" for number in range(1, templates)]
        super().__init__(
            tapp(
                replicas=n,
                template=body(OLD, "$(tapp.values.region)" if values else "eu-central-1"),
                templatePool={name: body(OLD, name) for name in names},
                templates={
                    str(each): names[each % templates - 1] for each in range(n) if each % templates
                },
                values={str(each): {"region": f"region-{each}"} for each in range(n)}
                if values
                else None,
            ),
            policies=(_with_managed_fields,),
        )

    def half_rolled(self) -> "Life":
        """Changes the image and lets half of the instances be updated; returns this object."""
        self.change(template=body(NEW), updateStrategy={"maxUnavailable": "50%"})
        self.sync()
        self.kubelet()
        return self


def body(image: str, region: str = "eu-central-1") -> Document:
    """Returns a pod template of a realistic size: its container runs `image` with REGION set to
    `region`.
    """
    secret = {"secretKeyRef": {"name": "db", "key": "url"}}
    container = {
        "args": ["--listen", ":8080", "--log-format", "json"],
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [{"name": "REGION", "value": region}, {"name": "DATABASE", "valueFrom": secret}],
        "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"cpu": "1"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 5},
        "livenessProbe": {"httpGet": {"path": "/live", "port": 8080}, "initialDelaySeconds": 10},
        "volumeMounts": [{"name": "cache", "mountPath": "/var/cache/web"}],
        "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True},
    }
    return template(
        image,
        annotations={"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
        container=container,
        volumes=[{"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}}],
        serviceAccountName="web",
        securityContext={"runAsNonRoot": True, "runAsUser": 1000},
    )


def request_in(situation: str, n: int) -> tuple[str, bytes]:
    """Returns the path of the hook's endpoint and the body of a request for a TApp with `n`
    instances.

    `situation` is one of `SITUATIONS` and says which call of the TApp's life this is.
    """
    life = Life(n)
    if situation != CREATE:
        life.settle()
    if situation in (ROLL, AFTER_ROLL):
        life.half_rolled().change(updateStrategy={"maxUnavailable": "10%"}).sync()
    if situation == AFTER_ROLL:
        life.settle()
    ends = situation == FINALIZE
    return "/finalize" if ends else "/sync", as_sent(life.request(finalizing=ends))


def _with_managed_fields(operation: str, made: Document) -> Document:
    """Adds the managedFields of two writers, about 2 KB, to each new object, as an API server
    does.
    """
    if operation != "CREATE":
        return made
    writes = {"metacontroller": _fields(made), "kubelet": {"f:status": _fields(_REPORTED)}}
    entries = [
        {
            "manager": manager,
            "operation": "Update",
            "apiVersion": "v1",
            "time": made["metadata"]["creationTimestamp"],
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        for manager, fields in writes.items()
    ]
    return {**made, "metadata": {**made["metadata"], "managedFields": entries}}


_KEYS = ("lastProbeTime", "lastTransitionTime", "observedGeneration", "status", "type")
_REPORTED = {
    "conditions": [dict.fromkeys(_KEYS, "")] * 4,
    **dict.fromkeys(("containerStatuses", "hostIP", "phase", "podIP", "startTime"), ""),
}


def _fields(value: Any) -> Document:
    if isinstance(value, list):
        value = {f'k:{{"name":"{index}"}}': item for index, item in enumerate(value)}
    if not isinstance(value, dict):
        return {}
    return {key if key[1:2] == ":" else f"f:{key}": _fields(value[key]) for key in value}
