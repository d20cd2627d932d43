{{- define "gardenlet.config" -}}
{{- $config := merge (dict "apiVersion" "gardenlet.config.gardener.cloud/v1alpha1" "kind" "GardenletConfiguration") .Values.config -}}
{{- toYaml $config -}}
{{- end -}}
