"""Where the chart's values go: places in objects, and objects that a value brings or leaves out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tapp.words.vocabulary import SHARD

from .templates import Overrides, Path

POD: Path = ("spec", "template", "spec")
CONTAINER: Path = (*POD, "containers", "hooks")
POD_METADATA: Path = ("spec", "template", "metadata")
CALLERS: Path = ("spec", "ingress", "0", "from")
CALLER: Path = ("namespaceSelector", "matchLabels", "kubernetes.io/metadata.name")
CONTROLLER_NAMESPACES: tuple[Path, ...] = ((*CALLERS, "0", *CALLER), (*CALLERS, "1", *CALLER))
"""Where Metacontroller is let in: its pods alone (only-metacontroller), or all its namespace."""
NAMESPACE = 'include "tapp.metacontrollerNamespace" .'
ACCOUNT = 'include "tapp.metacontrollerAccount" .'
TLS_GIVEN = ".Values.tls.secretName"
ISSUER = ".Values.tls.issuer"
OWN_ISSUER = '(dict "group" "cert-manager.io" "kind" "Issuer" "name" "tapp-hooks-ca")'
SPREAD = "topologySpreadConstraints"
POD_LABELS = ("app.kubernetes.io/name",)
MONITOR_LABELS = ("app.kubernetes.io/name", "apps.tkestack.io/scheme")
"""The manifests' own, which a value must not change."""

Write = Callable[[str], list[str]]


def line(key: str, expression: str) -> Write:
    """A key whose value is an expression of Helm's."""
    return lambda indent: [f"{indent}{key}: {{{{ {expression} }}}}"]


def block(key: str, value: str) -> Write:
    """A key whose value is a mapping or a list from the chart's values."""
    return lambda indent: [
        f"{indent}{key}:",
        f"{{{{- toYaml {value} | nindent {len(indent) + 2} }}}}",
    ]


def where_set(value: str, write: Write) -> Write:
    """The same, where the value is not empty."""
    return lambda indent: [f"{{{{- if {value} }}}}", *write(indent), "{{- end }}"]


def labels(value: str, own: Iterable[str]) -> Write:
    """More labels beside those that the manifests have."""
    names = " ".join(f'"{name}"' for name in own)
    given = f'dict "value" "{value}" "labels" .Values.{value} "own" (list {names})'
    return lambda indent: [
        f'{{{{- include "tapp.labels" ({given}) | trim | nindent {len(indent)} }}}}',
    ]


def variables(indent: str) -> list[str]:
    """The service's settings."""
    return [f'{{{{- include "tapp.settings" . | trim | nindent {len(indent)} }}}}']


def nothing(_: str) -> list[str]:
    """What is written elsewhere."""
    return []


def optional(key: str) -> Write:
    """A field of pods that the manifests do not have."""
    return where_set(f".Values.{key}", block(key, f".Values.{key}"))


def in_a_shard(text: str) -> Write:
    """A line for the registrations of shards alone."""
    return lambda indent: ["{{- if $shard }}", f"{indent}{text}", "{{- end }}"]


def selector(indent: str) -> list[str]:
    """The TApps of a registration: those with its label, or those without any."""
    return [
        "{{- if $shard }}",
        f"{indent}labelSelector:",
        f"{indent}  matchLabels:",
        f"{indent}    {SHARD}: {{{{ $shard | quote }}}}",
        "{{- else if .Values.components.shards }}",
        f"{indent}labelSelector:",
        f"{indent}  matchExpressions:",
        f"{indent}  - key: {SHARD}",
        f"{indent}    operator: DoesNotExist",
        "{{- end }}",
    ]


def for_each_shard(lines: list[str]) -> list[str]:
    """The object once for TApps of no shard, and once for each shard."""
    every = '{{- range $shard := prepend .Values.shards "" }}{{- with $ }}'
    return [every, "---", *lines, "{{- end }}{{- end }}"]


THEIR_NAMESPACE: Overrides = {("metadata", "namespace"): line("namespace", f"{NAMESPACE} | quote")}
THEIR_ACCOUNT: Overrides = {
    ("subjects", "metacontroller", "name"): line("name", f"{ACCOUNT} | quote"),
    ("subjects", "metacontroller", "namespace"): line("namespace", f"{NAMESPACE} | quote"),
}
MORE_LABELS: Overrides = {
    ("metadata", "labels", "more"): where_set(
        ".Values.monitoring.labels", labels("monitoring.labels", MONITOR_LABELS)
    )
}


# Metacontroller's own chart declares no port, so there is none to ask for by name.
CONTROLLER_PORT = """\
{{- if .Values.metacontroller.enabled }}
relabelings:
  - sourceLabels: [__meta_kubernetes_pod_ip]
    regex: ([^:]+)
    replacement: $1:9999
    targetLabel: __address__
  - sourceLabels: [__meta_kubernetes_pod_ip]
    regex: (.*:.*)
    replacement: "[$1]:9999"
    targetLabel: __address__
{{- else }}
port: metrics
{{- end }}"""


def controller_port(indent: str) -> list[str]:
    """How Prometheus finds Metacontroller's metrics in its pod."""
    return [each if each[0] == "{" else indent + each for each in CONTROLLER_PORT.splitlines()]


def overrides(settings: Iterable[str]) -> dict[str, Overrides]:
    """What values fill, by kind and name; `settings` are the variables of the value's default."""
    pod = ("imagePullSecrets", "nodeSelector", "tolerations", "affinity", SPREAD)
    return {
        "Deployment/tapp-hooks": {
            ("spec", "replicas"): line("replicas", ".Values.replicas"),
            (*POD_METADATA, "annotations"): where_set(
                ".Values.podAnnotations", block("annotations", ".Values.podAnnotations")
            ),
            (*POD_METADATA, "labels", "more"): where_set(
                ".Values.podLabels", labels("podLabels", POD_LABELS)
            ),
            (*CONTAINER, "image"): line("image", 'include "tapp.image" . | quote'),
            (*CONTAINER, "resources"): block("resources", ".Values.resources"),
            **{(*CONTAINER, "env", name): nothing for name in settings},
            (*CONTAINER, "env", "settings"): where_set(".Values.settings", variables),
            **{(*POD, key): optional(key) for key in pod},
            (*POD, "priorityClassName"): where_set(
                ".Values.priorityClassName",
                line("priorityClassName", ".Values.priorityClassName | quote"),
            ),
        },
        "CompositeController/tapp-controller": {
            ("metadata", "name"): lambda indent: [
                f"{indent}name: tapp-controller{{{{ with $shard }}}}-{{{{ . }}}}{{{{ end }}}}"
            ],
            ("metadata", "labels", "shard"): in_a_shard(f"{SHARD}: {{{{ $shard | quote }}}}"),
            ("spec", "parentResource", "labelSelector"): selector,
        },
        "PodDisruptionBudget/tapp-hooks": {
            ("spec", "maxUnavailable"): line(
                "maxUnavailable", ".Values.podDisruptionBudget.maxUnavailable"
            ),
        },
        "HorizontalPodAutoscaler/tapp-hooks": {
            **{
                ("spec", key): line(key, f".Values.autoscaling.{key}")
                for key in ("minReplicas", "maxReplicas")
            },
            ("spec", "metrics"): block("metrics", ".Values.autoscaling.metrics"),
        },
        "NetworkPolicy/tapp-hooks": {
            place: line(place[-1], f"{NAMESPACE} | quote") for place in CONTROLLER_NAMESPACES
        },
        "Certificate/tapp-hooks": {
            ("spec", "issuerRef"): block(
                "issuerRef", f"(merge (deepCopy ({ISSUER} | default dict)) {OWN_ISSUER})"
            ),
        },
        "ServiceMonitor/tapp-hooks": MORE_LABELS,
        "PrometheusRule/tapp": MORE_LABELS,
        "PodMonitor/tapp-metacontroller": {
            **MORE_LABELS,
            ("spec", "namespaceSelector", "matchNames"): line(
                "matchNames", f"list ({NAMESPACE}) | toJson"
            ),
            ("spec", "podMetricsEndpoints", "0", "port"): controller_port,
        },
        "ClusterRoleBinding/metacontroller-secrets": THEIR_ACCOUNT,
        "ClusterRoleBinding/metacontroller-tapp-services": THEIR_ACCOUNT,
        "Role/metacontroller-leader-election": THEIR_NAMESPACE,
        "RoleBinding/metacontroller-leader-election": {**THEIR_NAMESPACE, **THEIR_ACCOUNT},
    }


CONDITIONS = {
    **dict.fromkeys(
        ("Issuer/tapp-hooks-selfsigned", "Certificate/tapp-hooks-ca", "Issuer/tapp-hooks-ca"),
        f"not (or {TLS_GIVEN} {ISSUER})",
    ),
    "Certificate/tapp-hooks": f"not {TLS_GIVEN}",
    **dict.fromkeys(
        ("ClusterRole/metacontroller-secrets", "ClusterRoleBinding/metacontroller-secrets"),
        "and .Values.metacontroller.enabled"
        " (or .Values.components.bearerToken .Values.components.tlsCertManager)",
    ),
    **dict.fromkeys(
        ("Role/metacontroller-leader-election", "RoleBinding/metacontroller-leader-election"),
        'and .Values.metacontroller.enabled (include "tapp.elects" .)',
    ),
}
"""When an object is there, beside what its components ask for."""
