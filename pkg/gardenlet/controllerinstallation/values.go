package controllerinstallation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/version"
)

// valuesFor returns the values of an extension's chart: the operator's, and what gardenlet tells every extension.
func valuesFor(operator map[string]any, image string, garden Garden,
	seed *gardencorev1beta1.Seed) (map[string]any, error) {
	seedValues, err := seedValues(seed)
	if err != nil {
		return nil, err
	}
	values := map[string]any{}
	for key, value := range operator {
		values[key] = value
	}
	if _, set := values["image"]; !set && image != "" {
		values["image"] = image
	}
	values["gardener"] = map[string]any{
		"version": version.Version,
		"garden": map[string]any{
			"clusterIdentity":             garden.ClusterIdentity,
			"genericKubeconfigSecretName": GardenKubeconfigSecret,
		},
		"seed":      seedValues,
		"gardenlet": map[string]any{"featureGates": map[string]any{}},
	}
	return values, nil
}

// seedValues tells an extension about the seed it runs in.
func seedValues(seed *gardencorev1beta1.Seed) (map[string]any, error) {
	spec, err := toMap(seed.Spec)
	if err != nil {
		return nil, err
	}
	ingressDomain := ""
	if seed.Spec.Ingress != nil {
		ingressDomain = seed.Spec.Ingress.Domain
	}
	visible := seed.Spec.Settings == nil || seed.Spec.Settings.Scheduling == nil ||
		seed.Spec.Settings.Scheduling.Visible
	protected := false
	for _, taint := range seed.Spec.Taints {
		protected = protected || taint.Key == gardencorev1beta1.SeedTaintProtected
	}
	values := map[string]any{
		"name":          seed.Name,
		"identity":      ptr.Deref(seed.Status.ClusterIdentity, ""),
		"annotations":   anyMap(seed.Annotations),
		"labels":        anyMap(seed.Labels),
		"provider":      seed.Spec.Provider.Type,
		"region":        seed.Spec.Provider.Region,
		"ingressDomain": ingressDomain,
		"protected":     protected,
		"visible":       visible,
		"networks":      spec["networks"],
		"spec":          spec,
	}
	if taints, ok := spec["taints"]; ok {
		values["taints"] = taints
	}
	return values, nil
}

// toMap converts a value by way of JSON.
func toMap(value any) (map[string]any, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	result := map[string]any{}
	return result, json.Unmarshal(raw, &result)
}

func anyMap(from map[string]string) map[string]any {
	result := map[string]any{}
	for key, value := range from {
		result[key] = value
	}
	return result
}

// checksum identifies a chart with its values, what is injected, and what the registration offers.
func checksum(archive []byte, values map[string]any, injected bool,
	resources []gardencorev1beta1.ControllerResource) (string, error) {
	rendered, err := json.Marshal([]any{values, injected, resources})
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	hash.Write(archive)
	hash.Write(rendered)
	return hex.EncodeToString(hash.Sum(nil))[:16], nil
}
