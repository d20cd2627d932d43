package namespacedcloudprofile

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Merge returns what shoots of a namespaced profile can order: the parent, with what the profile adds. Of versions that
// the parent has, the profile changes the life cycle only; machine and volume types of the parent stay as they are.
// Neither argument is changed.
func Merge(parent *gardencorev1beta1.CloudProfileSpec,
	own *gardencorev1beta1.NamespacedCloudProfileSpec) (*gardencorev1beta1.CloudProfileSpec, error) {
	merged := parent.DeepCopy()
	own = own.DeepCopy()
	merged.CABundle = mergeBundles(merged.CABundle, own.CABundle)
	if own.Kubernetes != nil {
		merged.Kubernetes.Versions = mergeLives(merged.Kubernetes.Versions, own.Kubernetes.Versions)
	}
	merged.MachineImages = mergeImages(merged.MachineImages, own.MachineImages)
	merged.MachineTypes = addMissing(merged.MachineTypes, own.MachineTypes,
		func(t gardencorev1beta1.MachineType) string { return t.Name })
	merged.VolumeTypes = addMissing(merged.VolumeTypes, own.VolumeTypes,
		func(t gardencorev1beta1.VolumeType) string { return t.Name })
	if own.Limits != nil {
		merged.Limits = mergeLimits(merged.Limits, own.Limits)
	}
	var err error
	if merged.ProviderConfig, err = mergeConfigs(merged.ProviderConfig, own.ProviderConfig); err != nil {
		return nil, fmt.Errorf("spec.providerConfig: %w", err)
	}
	return merged, nil
}

func mergeBundles(parent, own *string) *string {
	switch {
	case own == nil || *own == "":
		return parent
	case parent == nil || *parent == "":
		return own
	}
	both := *parent + "\n" + *own
	return &both
}

// mergeLives takes over the life cycle of versions that the parent has. Others would be of no use: nobody could install
// them.
func mergeLives(parent, own []gardencorev1beta1.ExpirableVersion) []gardencorev1beta1.ExpirableVersion {
	for i := range parent {
		at := slices.IndexFunc(own, func(v gardencorev1beta1.ExpirableVersion) bool {
			return v.Version == parent[i].Version
		})
		if at >= 0 {
			overlay(&parent[i].ExpirationDate, own[at].ExpirationDate)
			overlay(&parent[i].Classification, own[at].Classification)
			if len(own[at].Lifecycle) > 0 {
				parent[i].Lifecycle = own[at].Lifecycle
			}
		}
	}
	return parent
}

// overlay replaces a value by one that is given.
func overlay[T any](to **T, from *T) {
	if from != nil {
		*to = from
	}
}

func mergeImages(parent, own []gardencorev1beta1.MachineImage) []gardencorev1beta1.MachineImage {
	for _, image := range own {
		at := slices.IndexFunc(parent, func(i gardencorev1beta1.MachineImage) bool { return i.Name == image.Name })
		if at < 0 {
			parent = append(parent, image)
			continue
		}
		overlay(&parent[at].UpdateStrategy, image.UpdateStrategy)
		parent[at].Versions = mergeImageVersions(parent[at].Versions, image.Versions)
	}
	return parent
}

func mergeImageVersions(parent, own []gardencorev1beta1.MachineImageVersion) []gardencorev1beta1.MachineImageVersion {
	for _, version := range own {
		at := slices.IndexFunc(parent,
			func(v gardencorev1beta1.MachineImageVersion) bool { return v.Version == version.Version })
		if at < 0 {
			parent = append(parent, version)
			continue
		}
		overlay(&parent[at].ExpirationDate, version.ExpirationDate)
		overlay(&parent[at].Classification, version.Classification)
		if len(version.Lifecycle) > 0 {
			parent[at].Lifecycle = version.Lifecycle
		}
	}
	return parent
}

func addMissing[T any](parent, own []T, name func(T) string) []T {
	for _, item := range own {
		if !slices.ContainsFunc(parent, func(p T) bool { return name(p) == name(item) }) {
			parent = append(parent, item)
		}
	}
	return parent
}

func mergeLimits(parent, own *gardencorev1beta1.Limits) *gardencorev1beta1.Limits {
	if parent == nil {
		return own
	}
	overlay(&parent.MaxNodesTotal, own.MaxNodesTotal)
	return parent
}

// mergeConfigs merges the settings for the extension of the provider, which Trellis does not understand, by their form:
// objects key by key, lists of objects by their name or version, other values are replaced.
func mergeConfigs(parent, own *runtime.RawExtension) (*runtime.RawExtension, error) {
	switch {
	case own == nil || len(own.Raw) == 0:
		return parent, nil
	case parent == nil || len(parent.Raw) == 0:
		return own, nil
	}
	var a, b map[string]any
	if err := json.Unmarshal(parent.Raw, &a); err != nil {
		return nil, fmt.Errorf("of the parent: %w", err)
	}
	if err := json.Unmarshal(own.Raw, &b); err != nil {
		return nil, err
	}
	// The parent says of which type the result is: its settings may be of another version.
	for _, key := range []string{"apiVersion", "kind"} {
		if _, ok := a[key]; ok {
			delete(b, key)
		}
	}
	raw, err := json.Marshal(mergeObjects(a, b))
	return &runtime.RawExtension{Raw: raw}, err
}

func mergeObjects(parent, own map[string]any) map[string]any {
	merged := maps.Clone(parent)
	for key, value := range own {
		merged[key] = mergeValues(merged[key], value)
	}
	return merged
}

func mergeValues(parent, own any) any {
	switch value := own.(type) {
	case map[string]any:
		if before, ok := parent.(map[string]any); ok {
			return mergeObjects(before, value)
		}
	case []any:
		if before, ok := parent.([]any); ok {
			return mergeLists(before, value)
		}
	}
	return own
}

func mergeLists(parent, own []any) []any {
	merged := slices.Clone(parent)
	for _, item := range own {
		at := slices.IndexFunc(merged, func(present any) bool { return sameItem(present, item) })
		if at < 0 {
			merged = append(merged, item)
			continue
		}
		merged[at] = mergeValues(merged[at], item)
	}
	return merged
}

// sameItem tells whether two items of a list are about the same thing: equal values, or objects with the same name or
// version.
func sameItem(a, b any) bool {
	objectA, isObjectA := a.(map[string]any)
	objectB, isObjectB := b.(map[string]any)
	if !isObjectA || !isObjectB {
		return reflect.DeepEqual(a, b)
	}
	for _, key := range []string{"name", "version"} {
		if value, ok := objectA[key]; ok {
			return objectB[key] == value
		}
	}
	return reflect.DeepEqual(a, b)
}
