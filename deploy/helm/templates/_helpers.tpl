{{- define "adtally.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "adtally.selector" -}}
app.kubernetes.io/name: adtally
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "adtally.labels" -}}
{{ include "adtally.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "adtally.image" -}}
{{- $image := .Values.image -}}
{{- $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}{{ with $image.digest }}@{{ . }}{{ end -}}
{{- end }}

{{/* Of every pod: no root, no rights, nothing to write to. */}}
{{- define "adtally.podSecurity" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* On which nodes, of every pod: a job that finds none keeps an update waiting. */}}
{{- define "adtally.scheduling" -}}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "adtally.containerSecurity" -}}
image: {{ include "adtally.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end }}

{{/* Where ClickHouse is, as the user given: (list . .Values.clickhouse.loader) */}}
{{- define "adtally.clickhouse" -}}
{{- $root := index . 0 -}}
{{- $user := index . 1 -}}
- name: CLICKHOUSE_URL
  value: {{ required "clickhouse.url is required, such as http://clickhouse.clickhouse.svc:8123" $root.Values.clickhouse.url | quote }}
- name: CLICKHOUSE_DATABASE
  value: {{ $root.Values.clickhouse.database | quote }}
- name: CLICKHOUSE_USER
  value: {{ $user.user | quote }}
- name: CLICKHOUSE_PASSWORD
  valueFrom:
    secretKeyRef: { name: {{ $user.existingSecret | quote }}, key: {{ $user.key | quote }} }
{{- end }}

{{/* Settings as environment variables. Helm reads numbers of a file as floats; quote alone writes a million as 1e+06. */}}
{{- define "adtally.settings" -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  value: {{ ternary (toJson $value) $value (kindIs "float64" $value) | quote }}
{{- end }}
{{- end }}
