"""values.yaml and values.schema.json: what a user of the chart may set, described in the schema.

The defaults are those of the manifests, so that a chart without values is an install.yaml.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any

import yaml

from . import settings
from .kustomize import INSTALL, Document
from .templates import AUTH_SECRET
from .variants import Chosen, Variants, camel

METACONTROLLER = INSTALL / "overlays" / "metacontroller"
LEAST = INSTALL / "overlays" / "least-privilege" / "cluster-role.yaml"
SCALER = INSTALL / "components" / "hpa-hook" / "horizontalpodautoscaler.yaml"
TWO = INSTALL / "overlays" / "high-availability" / "two.yaml"
WIDTH = 100
TEXT: Document = {"type": "string"}
TEXTS: Document = {"type": "object", "additionalProperties": TEXT}
SWITCH: Document = {"type": "boolean"}
COUNT: Document = {"type": "integer", "minimum": 1}
NAME: Document = {"type": "string", "minLength": 1}
TOLERATION: Document = {
    **dict.fromkeys(("key", "operator", "value", "effect"), TEXT),
    "tolerationSeconds": {"type": "integer"},
}
REQUIRED = (
    "image", "replicas", "autoscaling", "podDisruptionBudget", "settings", "components", "auth",
    "tls", "monitoring", "metacontrollerNamespace", "metacontroller", "shards",
)  # fmt: skip
"""What `null` must not remove, nor an upgrade that reuses the values of an older chart."""
AFFINITIES = ("nodeAffinity", "podAffinity", "podAntiAffinity")


def values(image: str, names: list[str], deployments: Variants) -> Document:
    """The defaults; `deployments` is what each set of components makes of the Deployment."""
    deployment = deployments[Chosen()]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {
        "image": image,
        "imagePullSecrets": [],
        "replicas": deployment["spec"]["replicas"],
        "autoscaling": autoscaling(),
        "podDisruptionBudget": {"maxUnavailable": 1},
        "topologySpreadConstraints": deployment["spec"]["template"]["spec"][
            "topologySpreadConstraints"
        ],
        "resources": container["resources"],
        "settings": settings.own(deployments),
        "components": {camel(name): False for name in names},
        "auth": {"secretName": AUTH_SECRET},
        "tls": {"secretName": "", "issuer": {}},
        "monitoring": {"labels": {}},
        "nodeSelector": {},
        "tolerations": [],
        "affinity": {},
        "priorityClassName": "",
        "podAnnotations": {},
        "podLabels": {},
        "metacontrollerNamespace": "metacontroller",
        "shards": [],
        "metacontroller": {
            "enabled": False,
            "namespaceOverride": "",
            "replicas": 1,
            "commandArgs": controller_arguments(),
            "affinity": spread(),
            "podDisruptionBudget": {"maxUnavailable": 1},
            "clusterRole": {"rules": yaml.safe_load(LEAST.read_text(encoding="utf-8"))["rules"]},
        },
    }


def autoscaling() -> Document:
    """How the service is scaled, as in the component."""
    spec = yaml.safe_load(SCALER.read_text(encoding="utf-8"))["spec"]
    return {key: spec[key] for key in ("minReplicas", "maxReplicas", "metrics")}


def controller_arguments() -> list[str]:
    """Metacontroller's arguments, as in its overlay."""
    patch = yaml.safe_load((METACONTROLLER / "arguments.yaml").read_text(encoding="utf-8"))
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    found: list[str] = container["args"]
    return found


def spread() -> Document:
    """The affinity of its replicas, as in the overlay that has two of them."""
    patch = yaml.safe_load(TWO.read_text(encoding="utf-8"))
    found: Document = patch["spec"]["template"]["spec"]["affinity"]
    return found


def schema(names: list[str], deployments: Variants) -> Document:
    """The schema: a mistyped value is refused with its name."""
    quantities = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
    return {
        "$schema": "https://json-schema.org/draft-07/schema#",
        "required": list(REQUIRED),
        **closed(
            image={
                "description": "The hook service's image, with its tag or digest",
                "type": "string",
                "pattern": r"^([^\s@]+(:[\w.-]+|@sha256:[0-9a-f]{64}))?$",
            },
            imagePullSecrets={
                "description": "Secrets that the image is pulled with, such as [{name: registry}]",
                "type": "array",
                "items": {**closed(name=NAME), "required": ["name"]},
            },
            replicas={
                "description": "How many pods the service has; components.hpaHook overrides it",
                "type": "integer",
                "minimum": 1,
            },
            autoscaling={
                "description": "For components.hpaHook",
                **closed(
                    minReplicas={"description": "Never fewer pods", **COUNT},
                    maxReplicas={"description": "Never more pods", **COUNT},
                    metrics={
                        "description": "What it scales by: CPU, or the service's own metric"
                        " tapp_hook_requests_in_flight, where an adapter serves it",
                        "type": "array",
                        "minItems": 1,
                        "items": {"type": "object", "required": ["type"]},
                    },
                ),
                "required": ["minReplicas", "maxReplicas", "metrics"],
            },
            podDisruptionBudget={
                "description": "How many of the service's pods evictions may make unavailable",
                **closed(maxUnavailable={"type": ["integer", "string"]}),
                "required": ["maxUnavailable"],
            },
            topologySpreadConstraints={
                "description": "How its pods are spread over nodes and zones",
                "type": "array",
                "items": {"type": "object"},
            },
            resources={
                "description": "The hook container's requests and limits",
                **closed(requests=quantities, limits=quantities),
            },
            settings=settings.schema(deployments),
            components={
                "description": "Which of the optional parts are on",
                **closed(
                    **{camel(name): {**SWITCH, "description": describe(name)} for name in names}
                ),
            },
            auth={
                "description": "For components.bearerToken",
                **closed(
                    secretName={
                        "description": "Secret with the keys `token`, which Metacontroller sends,"
                        " and `accepted`, which the service takes, one a line. Create it"
                        " before you install: without it no pod of the service starts",
                        **NAME,
                    }
                ),
                "required": ["secretName"],
            },
            tls={
                "description": "For components.tlsCertManager; by default cert-manager makes an"
                " authority for the service alone",
                **closed(
                    secretName={
                        "description": "Your own Secret with tls.crt, tls.key and ca.crt, for the"
                        " host tapp-hooks.NAMESPACE; cert-manager is not asked then",
                        **TEXT,
                    },
                    issuer={
                        "description": "Your own issuer, which has to fill in ca.crt, such as"
                        " {kind: ClusterIssuer, name: company}",
                        **closed(name=NAME, kind=NAME, group=NAME),
                    },
                ),
            },
            monitoring={
                "description": "For components.monitoring",
                **closed(
                    labels={
                        "description": "Labels by which your Prometheus selects monitors and rules,"
                        " such as {release: prometheus}",
                        **TEXTS,
                    }
                ),
            },
            nodeSelector={"description": "The nodes that the service may run on", **TEXTS},
            tolerations={
                "description": "The taints that the service tolerates",
                "type": "array",
                "items": closed(**TOLERATION),
            },
            affinity={
                "description": "Affinity of the service's pods, beside topologySpreadConstraints",
                **closed(**{key: {"type": "object"} for key in AFFINITIES}),
            },
            priorityClassName={
                "description": "The PriorityClass of the service's pods, such as"
                " system-cluster-critical",
                **TEXT,
            },
            podAnnotations={"description": "Annotations of the service's pods", **TEXTS},
            podLabels={"description": "More labels of the service's pods", **TEXTS},
            metacontrollerNamespace={
                "description": "The namespace of a Metacontroller that this chart does not bring",
                **NAME,
            },
            shards={
                "description": "For components.shards: a registration for the TApps with each of"
                " these labels and, with metacontroller.enabled, a Metacontroller. Never remove one"
                " that still has TApps",
                "type": "array",
                "uniqueItems": True,
                "items": {"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?$"},
            },
            metacontroller={
                "description": "Values of Metacontroller's own chart, and whether to install it",
                **THEIRS,
            },
            **{"global": {"type": "object"}},
        ),
    }


THEIRS: Document = {
    "type": "object",
    "required": ["enabled"],
    "properties": {
        "enabled": {**SWITCH, "description": "Whether it comes with this release"},
        "namespaceOverride": {
            "description": "Its namespace, if it is not the release's; it has to exist"
        },
        "replicas": {
            "description": "Two: one works, the other takes over. Then add --leader-election to"
            " commandArgs, without which both would write",
            "type": "integer",
            "minimum": 1,
        },
        "commandArgs": {"description": "Its arguments: limits that suit large TApps"},
        "affinity": {"description": "Its replicas run on different nodes where possible"},
        "podDisruptionBudget": {"description": "Without effect where there is one replica"},
        "clusterRole": {"description": "Its rights: what TApps need, and no more"},
    },
}


def closed(**properties: Document) -> Document:
    """The schema of an object that has these properties and no others."""
    return {"type": "object", "additionalProperties": False, "properties": properties}


def describe(component: str) -> str:
    """The first sentence of a component's kustomization."""
    file = INSTALL / "components" / component / "kustomization.yaml"
    text = file.read_text(encoding="utf-8")
    comment = re.match(r"(# .+\n)+", text)
    text = " ".join((comment.group() if comment else "").replace("# ", "").split())
    return re.split(r"\.( |$)", text)[0]


def commented(content: Document, described: Document, indent: str = "") -> str:
    """YAML with each value's description above it.

    What the schema has a default for and `content` does not mention stands there as a comment.
    """
    fields: dict[str, Any] = described.get("properties", {})
    lines: list[str] = []
    for key, value in content.items():
        field = fields.get(key, {})
        lines += [] if indent else [""]
        lines += comment_lines(field, indent)
        if field.get("properties") and value:
            lines += [f"{indent}{key}:", commented(value, field, indent + "  ").strip("\n")]
        else:
            lines.append(textwrap.indent(dump({key: value}).rstrip("\n"), indent))
    for key, field in fields.items():
        if key not in content and "default" in field:
            lines += comment_lines(field, indent)
            lines.append(f"{indent}# " + dump({key: field["default"]}).rstrip("\n"))
    return "\n".join(lines).lstrip("\n") + "\n"


def comment_lines(field: Document, indent: str) -> list[str]:
    """A field's description."""
    start = f"{indent}# "
    return [
        start + line
        for line in textwrap.wrap(
            field.get("description", ""), WIDTH - len(start), break_on_hyphens=False
        )
    ]


def dump(value: Any) -> str:
    """YAML in the order of its keys."""
    return yaml.safe_dump(value, sort_keys=False, width=WIDTH)
