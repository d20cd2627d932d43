package apis_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apis/generated/openapi"
)

// mergeKeys are the lists of the spec that the published API merges item by item, with the field that tells items
// apart.
var mergeKeys = map[reflect.Type]map[string]string{
	reflect.TypeFor[gardencorev1beta1.CloudProfileSpec](): {
		"machineImages": "name", "machineTypes": "name", "regions": "name", "volumeTypes": "name",
	},
	reflect.TypeFor[gardencorev1beta1.NamespacedCloudProfileSpec](): {
		"machineImages": "name", "machineTypes": "name", "volumeTypes": "name",
	},
	reflect.TypeFor[gardencorev1beta1.KubernetesSettings]():      {"versions": "version"},
	reflect.TypeFor[gardencorev1beta1.MachineImage]():            {"versions": "version"},
	reflect.TypeFor[gardencorev1beta1.Region]():                  {"zones": "name"},
	reflect.TypeFor[gardencorev1beta1.ExposureClassScheduling](): {"tolerations": "key"},
	reflect.TypeFor[gardencorev1beta1.ProjectTolerations]():      {"defaults": "key", "whitelist": "key"},
	reflect.TypeFor[gardencorev1beta1.SeedVolume]():              {"providers": "name"},
	reflect.TypeFor[gardencorev1beta1.ShootSpec]():               {"tolerations": "key"},
	reflect.TypeFor[gardencorev1beta1.Provider]():                {"workers": "name"},
	reflect.TypeFor[gardencorev1beta1.KubeAPIServerConfig]():     {"admissionPlugins": "name"},
	reflect.TypeFor[gardencorev1beta1.ShootStatus](): {
		"advertisedAddresses": "name", "conditions": "type", "constraints": "type",
	},
	reflect.TypeFor[gardencorev1beta1.ShootStateSpec](): {"gardener": "name"},
}

func TestMergeKeysAreThePublishedOnes(t *testing.T) {
	for goType, want := range mergeKeys {
		if got := keysOfTags(goType); !maps.Equal(got, want) {
			t.Errorf("%s merges %v, want %v", goType, got, want)
		}
	}
}

// The API server merges strategic merge patches by the tags of Go, and tracks by the OpenAPI definitions who owns which
// item; kubectl makes patches by the latter. Where the two differ, items cannot be removed.
func TestMergeKeysAgreeWithOpenAPI(t *testing.T) {
	definitions := openapi.GetOpenAPIDefinitions(func(string) spec.Ref { return spec.Ref{} })
	var merged int
	for _, goType := range ownStructs() {
		name := reflect.New(goType).Interface().(interface{ OpenAPIModelName() string }).OpenAPIModelName()
		definition, found := definitions[name]
		if !found {
			t.Errorf("%s has no definition", name)
			continue
		}
		tags := keysOfTags(goType)
		if described := keysOfDefinition(definition); !maps.Equal(tags, described) {
			t.Errorf("%s: the tags merge %v, the definition merges %v", name, tags, described)
		}
		merged += len(tags)
	}
	if merged < 25 {
		t.Errorf("found %d lists that are merged, want all", merged)
	}
}

// keysOfTags returns the lists of a struct that are merged, with their keys.
func keysOfTags(goType reflect.Type) map[string]string {
	keys := map[string]string{}
	for i := range goType.NumField() {
		if tag := goType.Field(i).Tag; tag.Get("patchStrategy") == "merge" {
			name, _, _ := strings.Cut(tag.Get("json"), ",")
			keys[name] = tag.Get("patchMergeKey")
		}
	}
	return keys
}

func keysOfDefinition(definition common.OpenAPIDefinition) map[string]string {
	keys := map[string]string{}
	for name, property := range definition.Schema.Properties {
		if strategy, _ := property.Extensions.GetString("x-kubernetes-patch-strategy"); strategy == "merge" {
			keys[name], _ = property.Extensions.GetString("x-kubernetes-patch-merge-key")
		}
	}
	return keys
}

// ownStructs returns the structs of the kinds that the garden serves, and all that are in them.
func ownStructs() []reflect.Type {
	found := map[reflect.Type]bool{}
	scheme := apis.GardenScheme()
	for kind, goType := range scheme.AllKnownTypes() {
		if isServed := strings.HasSuffix(kind.Group, ".gardener.cloud"); isServed &&
			kind.Group != "extensions.gardener.cloud" && kind.Group != "resources.gardener.cloud" {
			collectStructs(goType, found)
		}
	}
	return slices.Collect(maps.Keys(found))
}

func collectStructs(goType reflect.Type, found map[reflect.Type]bool) {
	switch goType.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		collectStructs(goType.Elem(), found)
	case reflect.Struct:
		if found[goType] || !strings.HasPrefix(goType.PkgPath(), "github.com/trellis-garden/") {
			return
		}
		found[goType] = true
		for i := range goType.NumField() {
			collectStructs(goType.Field(i).Type, found)
		}
	}
}
