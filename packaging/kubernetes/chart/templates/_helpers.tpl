{{- define "gpumeter.labels" -}}
app.kubernetes.io/name: gpumeter
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "gpumeter.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* Root, without capabilities or with those that are named; otherwise the user of the image. */ -}}
{{- define "gpumeter.user" -}}
{{ if or .Values.kubelet.sockets .Values.capabilities }}0{{ else }}65532{{ end }}
{{- end -}}
