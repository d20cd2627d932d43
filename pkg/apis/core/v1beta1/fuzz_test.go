package v1beta1

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"
)

func newDecoder(t testing.TB) runtime.Decoder {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return serializer.NewCodecFactory(scheme).UniversalDeserializer()
}

func addSeed(f *testing.F, kind string, object any) {
	data, err := json.Marshal(object)
	if err != nil {
		f.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		f.Fatal(err)
	}
	fields["apiVersion"], fields["kind"] = SchemeGroupVersion.String(), kind
	data, err = yaml.Marshal(fields)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
}

// Whatever is sent as a Shoot is decoded, gets defaults and is validated without a panic; defaults are set once and for all.
func FuzzDecodeShoot(f *testing.F) {
	addSeed(f, "Shoot", aShoot())
	addSeed(f, "Shoot", aWorkerlessShoot())
	f.Add([]byte("apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nspec: {provider: {workers: [{}]}, networking: {pods: ::/0}}"))
	decoder, profile := newDecoder(f), aProfile()
	f.Fuzz(func(t *testing.T, data []byte) {
		object, _, err := decoder.Decode(data, nil, nil)
		shoot, ok := object.(*Shoot)
		if err != nil || !ok {
			return
		}
		SetDefaultsShoot(shoot)
		again := shoot.DeepCopy()
		SetDefaultsShoot(again)
		if !apiequality.Semantic.DeepEqual(shoot, again) {
			t.Fatalf("defaults are not stable for %s", data)
		}
		DefaultShootFromCloudProfile(again, shoot, &profile.Spec, time.Unix(0, 0))
		ValidateShoot(again)
		ValidateShootUpdate(again, shoot)
		ValidateShootAgainstCloudProfile(again, shoot, &profile.Spec, time.Unix(0, 0))
	})
}

// Whatever is sent as a CloudProfile is decoded, gets defaults and is validated without a panic, also against a Shoot.
func FuzzDecodeCloudProfile(f *testing.F) {
	addSeed(f, "CloudProfile", aProfile())
	if published, err := os.ReadFile("../../testdata/cloudprofile-aws.yaml"); err == nil {
		f.Add(published)
	}
	decoder := newDecoder(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		object, _, err := decoder.Decode(data, nil, nil)
		profile, ok := object.(*CloudProfile)
		if err != nil || !ok {
			return
		}
		ValidateCloudProfile(profile)
		shoot := aShoot()
		shoot.Spec.Provider.Workers[0].Machine.Image = nil
		DefaultShootFromCloudProfile(shoot, nil, &profile.Spec, time.Unix(0, 0))
		ValidateShootAgainstCloudProfile(shoot, nil, &profile.Spec, time.Unix(0, 0))
	})
}

// Whatever is sent as a Seed is decoded, gets defaults and is validated without a panic.
func FuzzDecodeSeed(f *testing.F) {
	addSeed(f, "Seed", aSeed())
	decoder := newDecoder(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		object, _, err := decoder.Decode(data, nil, nil)
		seed, ok := object.(*Seed)
		if err != nil || !ok {
			return
		}
		ValidateSeed(seed)
		ValidateSeedUpdate(seed, aSeed())
	})
}
