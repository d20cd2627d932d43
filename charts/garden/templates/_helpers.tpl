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
