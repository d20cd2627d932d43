package v1alpha1

import (
	"encoding/json"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// fuzz decodes what is sent as a kind, sets defaults and validates it: without a panic, and with defaults that are set
// once and for all.
func fuzz[T runtime.Object](f *testing.F, kind string, example T, setDefaults func(T),
	validate ...func(object, old T) field.ErrorList) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		f.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	example.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{
		Group: GroupName, Version: SchemeGroupVersion.Version, Kind: kind,
	})
	data, err := json.Marshal(example)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("apiVersion: seedmanagement.gardener.cloud/v1alpha1\nkind: " + kind +
		"\nspec: {gardenlet: {config: {seedConfig: {}}}, config: 1}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		object, _, err := decoder.Decode(data, nil, nil)
		decoded, ok := object.(T)
		if err != nil || !ok {
			return
		}
		setDefaults(decoded)
		again := decoded.DeepCopyObject().(T)
		setDefaults(again)
		if !apiequality.Semantic.DeepEqual(decoded, again) {
			t.Fatalf("defaults are not stable for %s", data)
		}
		for _, check := range validate {
			check(again, example)
		}
	})
}

func FuzzDecodeManagedSeed(f *testing.F) {
	fuzz(f, "ManagedSeed", aManagedSeed(), SetDefaultsManagedSeed, ValidateManagedSeedUpdate,
		ValidateManagedSeedStatusUpdate)
}

func FuzzDecodeManagedSeedSet(f *testing.F) {
	fuzz(f, "ManagedSeedSet", aManagedSeedSet(), SetDefaultsManagedSeedSet, ValidateManagedSeedSetUpdate,
		ValidateManagedSeedSetStatusUpdate)
}

func FuzzDecodeGardenlet(f *testing.F) {
	fuzz(f, "Gardenlet", aGardenlet(), SetDefaultsGardenlet, ValidateGardenletUpdate, ValidateGardenletStatusUpdate)
}
