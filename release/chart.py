"""The Helm chart, made of what kustomize builds: its files, by name.

An object becomes a template of its own (templates.py); a component becomes a value that is true or
false. The namespace is the release's, so the chart leaves the Namespace object out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import yaml

from .kustomize import INSTALL, Document, components, composed
from .templates import Overrides, Path, template
from .variants import camel, choices, objects

CONTAINER: Path = ("spec", "template", "spec", "containers", "hooks")
CONTROLLER_NAMESPACE: Path = (
    "spec", "ingress", "0", "from", "0", "namespaceSelector", "matchLabels",
    "kubernetes.io/metadata.name",
)  # fmt: skip
KEPT = ("CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
"""What `helm uninstall` leaves: without the definition all TApps would go."""
POLICY = "helm.sh/resource-policy"
LEFT_OUT = ("Namespace",)
METACONTROLLER = INSTALL / "overlays" / "metacontroller"
LEAST = INSTALL / "overlays" / "least-privilege" / "cluster-role.yaml"

HELPERS = """\
{{- define "tapp.image" -}}
{{- $why := "image is not set: name the hook service's image" -}}
{{- required (print $why ", --set image=registry.example.com/tapp-hooks:VERSION") .Values.image -}}
{{- end -}}
{{- define "tapp.metacontrollerNamespace" -}}
{{- if .Values.metacontroller.enabled -}}
{{- .Values.metacontroller.namespaceOverride | default .Release.Namespace -}}
{{- else -}}
{{- .Values.metacontrollerNamespace -}}
{{- end -}}
{{- end -}}
"""
NOTES = """\
TApps are served as soon as Metacontroller runs, which is expected in the namespace
{{ include "tapp.metacontrollerNamespace" . }}:

  kubectl -n {{ .Release.Namespace }} rollout status deployment/tapp-hooks
  kubectl get tapps --all-namespaces

`helm uninstall` leaves the definition of TApp, all TApps and their pods; install again, and they
are served again. Delete the TApps before you uninstall if you want to be rid of them.
"""


def line(key: str, expression: str) -> Callable[[str], str]:
    """A key whose value is an expression of Helm's."""
    return lambda indent: f"{indent}{key}: {{{{ {expression} }}}}"


def block(key: str, value: str) -> Callable[[str], str]:
    """A key whose value is a mapping from the chart's values."""

    def write(indent: str) -> str:
        inner = len(indent) + 2
        return f"{indent}{key}:\n{{{{- toYaml {value} | nindent {inner} }}}}"

    return write


OVERRIDES: dict[str, Overrides] = {
    "Deployment": {
        ("spec", "replicas"): line("replicas", ".Values.replicas"),
        (*CONTAINER, "image"): line("image", 'include "tapp.image" . | quote'),
        (*CONTAINER, "resources"): block("resources", ".Values.resources"),
    },
    "NetworkPolicy": {
        CONTROLLER_NAMESPACE: line(
            CONTROLLER_NAMESPACE[-1], 'include "tapp.metacontrollerNamespace" . | quote'
        ),
    },
}


def files(version: str, image: str, repository: str, metacontroller: str) -> dict[str, str]:
    """The chart's files: path below the chart's directory -> text.

    `repository` is where the chart of Metacontroller is, `metacontroller` its version.
    """
    names = components()
    among = list(choices(names))
    made = {
        "Chart.yaml": dump(description(version, repository, metacontroller)),
        "values.yaml": dump(values(image, names)),
        "values.schema.json": json.dumps(schema(names), indent=2) + "\n",
        "templates/_helpers.tpl": HELPERS,
        "templates/NOTES.txt": NOTES,
    }
    for key, variants in objects(names).items():
        _, kind, _, name = key
        if kind in LEFT_OUT:
            continue
        kept = {chosen: keep(document) for chosen, document in variants.items()}
        made[f"templates/{kind.lower()}-{name}.yaml"] = template(
            kept, among, OVERRIDES.get(kind, {})
        )
    return made


def keep(document: Document) -> Document:
    """The object as it is in the chart: some are kept when the release is uninstalled."""
    if document["kind"] not in KEPT:
        return document
    metadata = dict(document["metadata"])
    metadata["annotations"] = {
        **metadata.get("annotations", {}), POLICY: "keep"
    }  # fmt: skip
    return {**document, "metadata": metadata}


def description(version: str, repository: str, metacontroller: str) -> Document:
    """Chart.yaml."""
    return {
        "apiVersion": "v2",
        "name": "tapp",
        "description": "TApp: numbered instances with templates of their own, on Metacontroller",
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": ">=1.33.0-0",
        "dependencies": [
            {
                "name": "metacontroller-helm",
                "alias": "metacontroller",
                "version": metacontroller,
                "repository": repository,
                "condition": "metacontroller.enabled",
            }
        ],
    }


def values(image: str, names: list[str]) -> Document:
    """values.yaml: what the manifests say, so that a chart without values is an install.yaml."""
    (deployment,) = [each for each in composed(()) if each["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {
        "image": image,
        "replicas": deployment["spec"]["replicas"],
        "resources": container["resources"],
        "components": {camel(name): False for name in names},
        "metacontrollerNamespace": "metacontroller",
        "metacontroller": {
            "enabled": False,
            "namespaceOverride": "",
            "commandArgs": controller_arguments(),
            "clusterRole": {"rules": yaml.safe_load(LEAST.read_text(encoding="utf-8"))["rules"]},
        },
    }


def controller_arguments() -> list[str]:
    """How Metacontroller is called, as in its overlay."""
    patch = yaml.safe_load((METACONTROLLER / "arguments.yaml").read_text(encoding="utf-8"))
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    found: list[str] = container["args"]
    return found


def schema(names: list[str]) -> Document:
    """values.schema.json: a mistyped value is refused with its name."""
    quantities = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
    return {
        "$schema": "https://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": False,
        "required": ["image", "replicas", "components", "metacontroller"],
        "properties": {
            "image": {
                "description": "The hook service's image, with its tag or digest",
                "type": "string",
                "pattern": r"^([^\s@]+(:[\w.-]+|@sha256:[0-9a-f]{64}))?$",
            },
            "replicas": {
                "description": "How many pods answer; without effect with hpaHook",
                "type": "integer",
                "minimum": 1,
            },
            "resources": {
                "description": "The hook container's requests and limits",
                "type": "object",
                "additionalProperties": False,
                "properties": {"requests": quantities, "limits": quantities},
            },
            "components": {
                "description": "Which of metacontroller/components are on",
                "type": "object",
                "additionalProperties": False,
                "properties": {camel(name): {"type": "boolean"} for name in names},
            },
            "metacontrollerNamespace": {
                "description": "Where a Metacontroller runs that this chart does not bring",
                "type": "string",
                "minLength": 1,
            },
            "metacontroller": {
                "description": "Values of Metacontroller's own chart, and whether to install it",
                "type": "object",
                "required": ["enabled"],
                "properties": {"enabled": {"type": "boolean"}},
            },
            "global": {"type": "object"},
        },
    }


def dump(value: Any) -> str:
    """YAML in the order of its keys."""
    return yaml.safe_dump(value, sort_keys=False, width=100)
