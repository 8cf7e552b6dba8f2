{{- define "vx.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "vx.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "vx.labels" -}}
{{ include "vx.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "vx.image" -}}
{{- $repository := required "image.repository is required: push the image of deploy/Dockerfile to a registry and name it" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* What every pod has in common: no token of the API server, no root, nothing writable but volumes. */}}
{{- define "vx.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: { type: RuntimeDefault }
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "vx.container" -}}
image: {{ include "vx.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  capabilities: { drop: [ALL] }
  seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "vx.operatorScheme" -}}
{{- if .Values.tls.operatorSecretName -}}https{{- else -}}http{{- end -}}
{{- end -}}

{{- define "vx.publicScheme" -}}
{{- if .Values.tls.secretName -}}HTTPS{{- else -}}HTTP{{- end -}}
{{- end -}}

{{/* The database, or the cells, with the logins of the servers. */}}
{{- define "vx.databaseEnv" -}}
{{- if .Values.cells.secretName -}}
- { name: VX_CELLS, value: /etc/vx/cells/cells.yaml }
{{- else -}}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef: { name: {{ .Values.database.secretName }}, key: {{ .Values.database.key }} }
{{- end -}}
{{- end -}}

{{/* The same with the logins of the owners. */}}
{{- define "vx.ownerEnv" -}}
{{- if .Values.cells.secretName -}}
- { name: VX_CELLS, value: /etc/vx/cells/cells.yaml }
{{- else -}}
- name: DATABASE_URL
  valueFrom:
    secretKeyRef: { name: {{ .Values.migration.secretName }}, key: {{ .Values.migration.key }} }
{{- end -}}
{{- end -}}

{{- define "vx.cellsMount" -}}
{{- if .Values.cells.secretName -}}
- { name: cells, mountPath: /etc/vx/cells, readOnly: true }
{{- end -}}
{{- end -}}

{{- define "vx.ownerCellsVolume" -}}
{{- if .Values.cells.secretName -}}
- name: cells
  secret:
    secretName: {{ .Values.cells.migrationSecretName }}
    defaultMode: 0440
    items: [{ key: {{ .Values.cells.key }}, path: cells.yaml }]
{{- end -}}
{{- end -}}
