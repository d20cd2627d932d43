package apis_test

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/apis"
	authenticationv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/authentication/v1alpha1"
	gardencorev1 "github.com/trellis-garden/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

const roundsPerKind = 30

// What JSON says stays the same when it goes through a type, for every kind and every field.
func TestRoundTrip(t *testing.T) {
	for _, scheme := range []*runtime.Scheme{apis.GardenScheme(), apis.SeedScheme()} {
		for _, kind := range ownKinds(scheme) {
			t.Run(kind.String(), func(t *testing.T) {
				filler := fillerFor(scheme)
				for range roundsPerKind {
					roundTrip(t, scheme, kind, filler)
				}
			})
		}
	}
}

func ownKinds(scheme *runtime.Scheme) []schema.GroupVersionKind {
	own := []schema.GroupVersion{
		gardencorev1beta1.SchemeGroupVersion, gardencorev1.SchemeGroupVersion, securityv1alpha1.SchemeGroupVersion,
		seedmanagementv1alpha1.SchemeGroupVersion, operationsv1alpha1.SchemeGroupVersion,
		authenticationv1alpha1.SchemeGroupVersion,
		extensionsv1alpha1.SchemeGroupVersion, resourcesv1alpha1.SchemeGroupVersion,
	}
	shared := scheme.KnownTypes(schema.GroupVersion{Version: "v1"})
	var kinds []schema.GroupVersionKind
	for kind := range scheme.AllKnownTypes() {
		_, isMeta := shared[kind.Kind] // ListOptions and the like, which every group has
		if slices.Contains(own, kind.GroupVersion()) && !isMeta {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func roundTrip(t *testing.T, scheme *runtime.Scheme, kind schema.GroupVersionKind, filler *randfill.Filler) {
	t.Helper()
	object, err := scheme.New(kind)
	if err != nil {
		t.Fatal(err)
	}
	filler.Fill(object)
	object.GetObjectKind().SetGroupVersionKind(kind)
	if !apiequality.Semantic.DeepEqual(object, object.DeepCopyObject()) {
		t.Fatalf("the deep copy differs")
	}

	first := marshal(t, object)
	decoded, err := scheme.New(kind)
	if err != nil {
		t.Fatal(err)
	}
	if err := decodeStrictly(first, decoded); err != nil {
		t.Fatalf("%v in %s", err, first)
	}
	if second := marshal(t, decoded); !bytes.Equal(first, second) {
		t.Fatalf("was %s\nbecame %s", first, second)
	}
	if !apiequality.Semantic.DeepEqual(object, decoded) {
		t.Fatalf("something is not in the JSON: %s", first)
	}
}

func marshal(t *testing.T, object any) []byte {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decodeStrictly(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

func fillerFor(scheme *runtime.Scheme) *randfill.Filler {
	own := func(serializer.CodecFactory) []any {
		return []any{
			func(raw *runtime.RawExtension, c randfill.Continue) {
				raw.Raw = []byte(`{"apiVersion":"example.com/v1","kind":"Config","number":` +
					string('0'+rune(c.Intn(10))) + `}`)
			},
			func(raw *apiextensionsv1.JSON, c randfill.Continue) {
				raw.Raw = []byte(`["` + string('a'+rune(c.Intn(26))) + `"]`)
			},
			func(quantity *resource.Quantity, c randfill.Continue) {
				*quantity = *resource.NewQuantity(c.Int63n(1<<30), resource.DecimalSI)
			},
			// its schema has patterns
			func(ingress *corev1.LoadBalancerIngress, _ randfill.Continue) { ingress.IP = "192.0.2.1" },
			// the schema refuses empty ones
			func(value *[]byte, c randfill.Continue) { *value = []byte{byte(c.Intn(256))} },
			// modes of files are not negative
			func(value *int32, c randfill.Continue) { *value = c.Int31() },
			func(value *intstr.IntOrString, c randfill.Continue) {
				*value = intstr.FromInt32(c.Int31n(100))
				if c.Bool() {
					*value = intstr.FromString("25%")
				}
			},
		}
	}
	return fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, own), rand.NewSource(1),
		serializer.NewCodecFactory(scheme))
}

// A CloudProfile from the documentation of the published API decodes strictly and comes back as it was.
func TestPublishedCloudProfile(t *testing.T) {
	published, err := os.ReadFile("testdata/cloudprofile-aws.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var profile gardencorev1beta1.CloudProfile
	if err := yaml.UnmarshalStrict(published, &profile); err != nil {
		t.Fatal(err)
	}
	if errs := gardencorev1beta1.ValidateCloudProfile(&profile); len(errs) > 0 {
		t.Errorf("is refused: %v", errs.ToAggregate())
	}

	var want, got map[string]any
	if err := yaml.Unmarshal(published, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(marshal(t, &profile), &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "status") // empty
	if !apiequality.Semantic.DeepEqual(want, got) {
		t.Errorf("was %v\nbecame %v", want, got)
	}
}
