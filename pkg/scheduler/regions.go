package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Region distances are ConfigMaps in the garden's namespace: a key per region of shoots, whose value maps regions of
// seeds to distances.
const (
	// LabelPurpose, with the value PurposeRegionConfig, marks ConfigMaps with distances between regions.
	LabelPurpose = "scheduling.gardener.cloud/purpose"
	// PurposeRegionConfig is the purpose of distances between regions.
	PurposeRegionConfig = "region-config"
	// AnnotationCloudProfiles names the cloud profiles that the distances are for, separated by commas.
	AnnotationCloudProfiles = "scheduling.gardener.cloud/cloudprofiles"
)

// RegionDistances returns the distances from a region that are configured for a cloud profile; nil when there are none.
// Of several ConfigMaps for one profile the first by name counts.
func RegionDistances(configMaps []corev1.ConfigMap, profile, region string) (map[string]int, error) {
	ordered := slices.SortedFunc(slices.Values(configMaps),
		func(a, b corev1.ConfigMap) int { return cmp.Compare(a.Name, b.Name) })
	for _, configMap := range ordered {
		if !isFor(configMap, profile) {
			continue
		}
		content, ok := configMap.Data[region]
		if !ok {
			return nil, nil
		}
		var distances map[string]int
		if err := yaml.UnmarshalStrict([]byte(content), &distances); err != nil {
			return nil, fmt.Errorf("ConfigMap %s/%s, data.%s: must map names of regions to whole numbers: %w",
				configMap.Namespace, configMap.Name, region, err)
		}
		return distances, nil
	}
	return nil, nil
}

func isFor(configMap corev1.ConfigMap, profile string) bool {
	return slices.ContainsFunc(strings.Split(configMap.Annotations[AnnotationCloudProfiles], ","),
		func(name string) bool {
			return strings.TrimSpace(name) == profile
		})
}
