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

{{- /* The account that Metacontroller runs as. */ -}}
{{- define "tapp.metacontrollerAccount" -}}
{{- if .Values.metacontroller.enabled -}}
{{- include "metacontroller.serviceAccountName" .Subcharts.metacontroller -}}
{{- else -}}
metacontroller
{{- end -}}
{{- end -}}

{{- /* Whether Metacontroller's replicas elect a leader: a text, or nothing. */ -}}
{{- define "tapp.elects" -}}
{{- $arguments := .Values.metacontroller.commandArgs -}}
{{- if or (has "--leader-election" $arguments) (has "--leader-election=true" $arguments) -}}
yes
{{- end -}}
{{- end -}}

{{- define "tapp.tlsSecret" -}}
{{- .Values.tls.secretName | default "tapp-hooks-tls" -}}
{{- end -}}

{{- /* Helm reads every number of a file as a float, and would write a large one with an exponent. */ -}}
{{- define "tapp.settings" -}}
{{- range $name, $value := .Values.settings }}
{{- if not (kindIs "invalid" $value) }}
- name: {{ $name }}
  value: {{ (kindIs "float64" $value | ternary (int64 $value) $value) | toString | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* The labels of a value, which must not change those that the manifests have (own). */ -}}
{{- define "tapp.labels" -}}
{{- range $name, $text := .labels }}
{{- if has $name $.own }}
{{- fail (printf "%s.%s is the manifests' own label, by which they select: choose another name" $.value $name) }}
{{- end }}
{{ $name | quote }}: {{ $text | quote }}
{{- end }}
{{- end -}}
