"""Writes substitutes for Metacontroller's own chart and manifests, whose originals need a network.

Names, versions and kinds are the real ones; the contents are only what the tests read.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import yaml

from release import metacontroller

IMAGE = "metacontroller:v0"
DEFINITIONS = Path(__file__).parents[1] / "e2e" / "metacontroller-crds.yaml"
TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: metacontroller
  namespace: {{ .Values.namespaceOverride | default .Release.Namespace }}
data:
  rules: {{ .Values.clusterRole.rules | toJson | quote }}
  arguments: {{ .Values.commandArgs | toJson | quote }}
"""
STATEFUL_SET = """\
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ include "metacontroller.fullname" . }}
  labels: &labels {app.kubernetes.io/name: {{ .Chart.Name }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: *labels}
  template:
    metadata: {labels: *labels}
    spec:
      containers:
        - name: metacontroller
          image: {{ .Values.image }}
          args: {{ .Values.commandArgs | toJson }}
          resources: {{ .Values.resources | default dict | toJson }}
"""
HELPERS = """\
{{- define "metacontroller.fullname" -}}{{ .Release.Name }}-metacontroller{{- end -}}
{{- define "metacontroller.serviceAccountName" -}}{{ .Values.serviceAccount.name }}{{- end -}}
"""


def chart_in(place: Path) -> Path:
    """Writes the substitute for Metacontroller's chart into the directory `place`, and returns its
    directory.
    """
    directory = place / "metacontroller-helm"
    (directory / "templates").mkdir(parents=True)
    (directory / "crds").mkdir()
    shutil.copy(DEFINITIONS, directory / "crds")
    described = {"apiVersion": "v2", "name": directory.name, "version": metacontroller.version()}
    (directory / "Chart.yaml").write_text(yaml.safe_dump(described))
    account = {"serviceAccount": {"name": "theirs"}}
    defaults = {"namespaceOverride": "", "commandArgs": [], "image": IMAGE, **account}
    (directory / "values.yaml").write_text(yaml.safe_dump(defaults))
    (directory / "templates" / "_helpers.tpl").write_text(HELPERS)
    (directory / "templates" / "values.yaml").write_text(TEMPLATE)
    (directory / "templates" / "statefulset.yaml").write_text(STATEFUL_SET)
    return directory


def manifests_in(place: Path) -> Path:
    """Writes the substitute for `manifests/production` into the directory `place`, and returns its
    directory.
    """
    directory = place / "production"
    directory.mkdir(parents=True)
    metadata = {"name": "metacontroller", "namespace": "metacontroller"}
    container = {"name": "metacontroller", "image": IMAGE, "args": ["--theirs"]}
    labels = {"app.kubernetes.io/name": "metacontroller"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec: dict[str, Any] = {"serviceName": "", "selector": {"matchLabels": labels}}
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "metacontroller"}},
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": metadata,
            "spec": {**spec, "template": template},
        },
    ]
    (directory / "metacontroller.yaml").write_text(yaml.safe_dump_all(objects))
    shutil.copy(DEFINITIONS, directory / "definitions.yaml")
    resources = {"resources": ["definitions.yaml", "metacontroller.yaml"]}
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(resources))
    return directory
