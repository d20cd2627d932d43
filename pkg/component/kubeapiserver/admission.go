package kubeapiserver

import (
	"encoding/json"
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const imagePolicyWebhook = "ImagePolicyWebhook"

// kubeconfigFields say where the configurations of admission plugins name the kubeconfig of their webhook.
var kubeconfigFields = map[string][]string{
	imagePolicyWebhook:           {"imagePolicy", "kubeConfigFile"},
	"MutatingAdmissionWebhook":   {"kubeConfigFile"},
	"ValidatingAdmissionWebhook": {"kubeConfigFile"},
}

// admission is the AdmissionConfiguration with the settings of plugins.
func admission(configs []AdmissionConfig) (map[string]any, error) {
	var plugins []any
	for _, config := range configs {
		content, err := pluginConfig(config)
		if err != nil {
			return nil, fmt.Errorf("configuration of admission plugin %s: %w", config.Name, err)
		}
		plugins = append(plugins, map[string]any{"name": config.Name, "configuration": content})
	}
	return map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins,
	}, nil
}

// pluginConfig is the configuration of a plugin with the place of its kubeconfig.
func pluginConfig(config AdmissionConfig) (map[string]any, error) {
	content := map[string]any{}
	if len(config.Config) > 0 {
		if err := json.Unmarshal(config.Config, &content); err != nil {
			return nil, err
		}
	}
	fields, known := kubeconfigFields[config.Name]
	if !known || len(config.Kubeconfig) == 0 {
		return content, nil
	}
	if len(fields) == 1 && len(content) == 0 {
		content["apiVersion"], content["kind"] = "apiserver.config.k8s.io/v1", "WebhookAdmissionConfiguration"
	}
	return content, unstructured.SetNestedField(content, path.Join(configMount, admissionFolder, config.Name),
		fields...)
}

// admissionKubeconfigs are the kubeconfigs by the name of the plugin.
func admissionKubeconfigs(v Values) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, config := range v.AdmissionConfigs {
		if len(config.Kubeconfig) == 0 {
			continue
		}
		files[config.Name] = config.Kubeconfig
		if config.Name != imagePolicyWebhook || !hasSidecar(v) {
			continue
		}
		var err error
		if files[config.Name], err = throughSidecar(config.Kubeconfig); err != nil {
			return nil, err
		}
	}
	return files, nil
}
