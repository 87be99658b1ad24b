{{- /* The name of the service and of its objects. */ -}}
{{- define "tapp.fullname" -}}
{{- .Values.fullnameOverride | default "tapp-hooks" -}}
{{- end -}}

{{- /* The labels that select the service's pods. They must never change. */ -}}
{{- define "tapp.selector" -}}
app.kubernetes.io/name: tapp-hooks
{{- end -}}

{{- /* The labels of the chart's objects. */ -}}
{{- define "tapp.labels" -}}
{{ include "tapp.selector" . }}
{{ include "tapp.common" . }}
{{- end -}}

{{- /* The labels of objects that no selector uses. */ -}}
{{- define "tapp.common" -}}
app.kubernetes.io/part-of: tapp
{{- include "tapp.more" (dict "value" "commonLabels" "labels" .Values.commonLabels) }}
{{- end -}}

{{- /* The labels from a value. They must not override those of the chart. */ -}}
{{- define "tapp.more" -}}
{{- range $name, $text := .labels }}
{{- if has $name (list "app.kubernetes.io/name" "app.kubernetes.io/part-of" "apps.tkestack.io/scheme") }}
{{- fail (printf "%s.%s is the chart's own label: choose another name" $.value $name) }}
{{- end }}
{{ $name | quote }}: {{ $text | quote }}
{{- end }}
{{- end -}}

{{- /* The image with its tag or digest; a string value is used unchanged. */ -}}
{{- define "tapp.image" -}}
{{- $image := .Values.image -}}
{{- $why := "image is not set: name the hook service's image, --set image.registry=registry.example.com,image.repository=tapp-hooks" -}}
{{- if kindIs "string" $image -}}
{{- required $why $image -}}
{{- else -}}
{{- $name := required $why $image.repository -}}
{{- with (.Values.global).imageRegistry | default $image.registry }}{{ . }}/{{ end -}}
{{- $name -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end -}}
{{- end -}}

{{- /* The URL of the hooks, without the hook's name. */ -}}
{{- define "tapp.url" -}}
{{- $tls := .Values.components.tlsCertManager -}}
{{- printf "%s://%s.%s.svc:%s" (ternary "https" "http" $tls) (include "tapp.fullname" .) .Release.Namespace (include "tapp.port" .) -}}
{{- end -}}

{{- define "tapp.port" -}}
{{- ternary "8443" "8080" .Values.components.tlsCertManager -}}
{{- end -}}

{{- define "tapp.tlsSecret" -}}
{{- .Values.tls.secretName | default (printf "%s-tls" (include "tapp.fullname" .)) -}}
{{- end -}}

{{- /* The call of a hook; the argument is the list (root, hook, timeout). */ -}}
{{- define "tapp.webhook" -}}
{{- $root := index . 0 -}}
version: v2
webhook:
  url: {{ include "tapp.url" $root }}/{{ index . 1 }}
  timeout: {{ index . 2 }}
{{- if $root.Values.components.bearerToken }}
  authorization:
    type: Bearer
    secretRef:
      name: {{ $root.Values.auth.secretName | quote }}
      namespace: {{ $root.Release.Namespace | quote }}
      key: token
{{- end }}
{{- if $root.Values.components.tlsCertManager }}
  caBundle:
    secretRef:
      name: {{ include "tapp.tlsSecret" $root | quote }}
      namespace: {{ $root.Release.Namespace | quote }}
      key: ca.crt
{{- end }}
{{- end -}}

{{- /* The service account of the service, or nothing if it needs no account. */ -}}
{{- define "tapp.account" -}}
{{- if .Values.components.events -}}
{{- include "tapp.fullname" . -}}
{{- else if .Values.components.resize -}}
{{- include "tapp.fullname" . }}-resize
{{- end -}}
{{- end -}}

{{- /* Formats a number. Helm reads numbers in files as floats, and would write large numbers with an exponent. */ -}}
{{- define "tapp.settings" -}}
{{- range $name, $value := .Values.settings }}
{{- if not (kindIs "invalid" $value) }}
- name: {{ $name }}
  value: {{ (kindIs "float64" $value | ternary (int64 $value) $value) | toString | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* The objects of a file that kustomize uses, too; the argument is the list (root, file). */ -}}
{{- define "tapp.shipped" -}}
{{- $root := index . 0 -}}
{{- $text := $root.Files.Get (printf "files/%s" (index . 1)) -}}
{{- $more := include "tapp.common" $root | fromYaml -}}
{{- range $document := regexSplit "(?m)^---$" $text -1 }}
{{- $object := fromYaml $document }}
{{- $_ := set $object.metadata "labels" (merge (dict) ($object.metadata.labels | default dict) $more) }}
{{- if hasPrefix "ValidatingAdmissionPolicy" $object.kind }}
{{- $_ := set $object.metadata "annotations" (dict "helm.sh/resource-policy" "keep") }}
{{- end }}
---
{{ toYaml $object }}
{{- end }}
{{- end -}}

{{- define "tapp.metacontrollerNamespace" -}}
{{- if .Values.metacontroller.enabled -}}
{{- .Values.metacontroller.namespaceOverride | default .Release.Namespace -}}
{{- else -}}
{{- .Values.metacontrollerNamespace -}}
{{- end -}}
{{- end -}}

{{- /* The service account of Metacontroller. */ -}}
{{- define "tapp.metacontrollerAccount" -}}
{{- if .Values.metacontroller.enabled -}}
{{- include "metacontroller.serviceAccountName" .Subcharts.metacontroller -}}
{{- else -}}
metacontroller
{{- end -}}
{{- end -}}

{{- /* A non-empty string if Metacontroller's replicas elect a leader. */ -}}
{{- define "tapp.elects" -}}
{{- $arguments := .Values.metacontroller.commandArgs -}}
{{- if or (has "--leader-election" $arguments) (has "--leader-election=true" $arguments) -}}
yes
{{- end -}}
{{- end -}}
