{{- define "garden.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "garden.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "garden.labels" -}}
app: gardener
role: {{ . }}
app.kubernetes.io/name: garden-{{ . }}
{{- end }}

{{- /* The garbage collector does all it can from 95 % of the container's limit on: a million bytes for each MiB. */ -}}
{{- define "garden.garbageCollection" -}}
- name: GOGC
  value: "50"
- name: TRELLIS_MEMORY_LIMIT
  valueFrom:
    resourceFieldRef: {resource: limits.memory, divisor: 1Mi}
- name: GOMEMLIMIT
  value: $(TRELLIS_MEMORY_LIMIT)000000
{{- end }}

{{- /* Given are a role and its number of replicas, which run on different nodes, and in different zones, where there
are some. */ -}}
{{- define "garden.spread" -}}
{{- if gt (int (index . 1)) 1 -}}
topologySpreadConstraints:
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- topologyKey: {{ . }}
  maxSkew: 1
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      app: gardener
      role: {{ index $ 0 }}
  matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}
{{- end }}

{{- /* Given are the root, a role and its number of replicas: a drain takes one of several at a time. */ -}}
{{- define "garden.disruptionBudget" -}}
{{- if gt (int (index . 2)) 1 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: garden-{{ index . 1 }}
  namespace: {{ (index . 0).Release.Namespace }}
  labels:
    {{- include "garden.labels" (index . 1) | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      app: gardener
      role: {{ index . 1 }}
{{- end }}
{{- end }}

{{- /* The configuration file of the dashboard (docs/contracts/dashboard.md). Who encrypts sessions, and who is an issuer,
is in Secrets beside it. */ -}}
{{- define "garden.dashboardConfig" -}}
{{- with .Values.dashboard -}}
publicURL: https://{{ .host }}{{ if ne (int .port) 443 }}:{{ .port }}{{ end }}
garden:
  name: {{ .garden.name | default $.Values.clusterIdentity | toJson }}
  server: {{ .garden.server | toJson }}
  {{- with .garden.serverName }}
  serverName: {{ . | toJson }}
  {{- end }}
  {{- if .garden.certificateAuthority }}
  caFile: /etc/trellis/dashboard/garden-ca.crt
  {{- end }}
  {{- with .garden.addresses }}
  addresses: {{ toJson . }}
  {{- end }}
{{- with .endpoints }}
endpoints: {{ toJson . }}
{{- end }}
session:
  keysFile: /var/run/secrets/session/keys
{{- with .sessionLifetime }}
  lifetime: {{ . }}
{{- end }}
{{- with .terminalImage }}
terminals:
  image: {{ . | toJson }}
{{- end }}
{{- with .issuers }}
issuers:
{{- range . }}
- name: {{ required "dashboard.issuers: name" .name | toJson }}
  {{- with .title }}
  title: {{ . | toJson }}
  {{- end }}
  url: {{ required "dashboard.issuers: url" .url | toJson }}
  clientID: {{ required "dashboard.issuers: clientID" .clientID | toJson }}
  {{- if .clientSecretName }}
  clientSecretFile: /var/run/secrets/issuers/{{ .name }}/clientSecret
  {{- end }}
  {{- if .certificateAuthority }}
  caFile: /etc/trellis/dashboard/issuer-{{ .name }}-ca.crt
  {{- end }}
  {{- with .scopes }}
  scopes: {{ toJson . }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The files of the dashboard that are no secrets: its configuration, and the authorities that it trusts. */ -}}
{{- define "garden.dashboardFiles" -}}
config.yaml: |
  {{- include "garden.dashboardConfig" $ | nindent 2 }}
{{- with .Values.dashboard }}
{{- with .garden.certificateAuthority }}
garden-ca.crt: {{ . | toJson }}
{{- end }}
{{- range .issuers }}
{{- if .certificateAuthority }}
issuer-{{ .name }}-ca.crt: {{ .certificateAuthority | toJson }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
