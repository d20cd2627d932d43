package v1

import (
	"math/rand"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{AddToScheme, gardencorev1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

func namedSecret(name string) gardencorev1beta1.NamedResourceReference {
	return gardencorev1beta1.NamedResourceReference{
		Name: name, ResourceRef: autoscalingv1.CrossVersionObjectReference{
			APIVersion: "v1", Kind: "Secret", Name: name,
		},
	}
}

func withAnnotations(pairs ...string) metav1.ObjectMeta {
	annotations := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		annotations[pairs[i]] = pairs[i+1]
	}
	return metav1.ObjectMeta{Name: "extension", Annotations: annotations}
}

func raw(json string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(json)} }

func TestConversion(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "extension"}
	for name, test := range map[string]struct {
		v1beta1 gardencorev1beta1.ControllerDeployment
		v1      ControllerDeployment
	}{
		"chart and values": {
			gardencorev1beta1.ControllerDeployment{
				ObjectMeta: meta, Type: "helm", ProviderConfig: raw(`{"chart":"Zm9v","values":{"a":1}}`),
			},
			ControllerDeployment{
				ObjectMeta: meta, Helm: &HelmControllerDeployment{
					RawChart: []byte("foo"), Values: &apiextensionsv1.JSON{Raw: []byte(`{"a":1}`)},
				},
			},
		},
		"repository": {
			gardencorev1beta1.ControllerDeployment{
				ObjectMeta: meta, Type: "helm",
				ProviderConfig: raw(`{"ociRepository":{"ref":"registry.example.com/chart:v1"}}`),
			},
			ControllerDeployment{
				ObjectMeta: meta, Helm: &HelmControllerDeployment{
					OCIRepository: &OCIRepository{Ref: new("registry.example.com/chart:v1")},
				},
			},
		},
		"keys that v1 does not know": {
			gardencorev1beta1.ControllerDeployment{
				ObjectMeta: meta, Type: "helm", ProviderConfig: raw(`{"chart":"Zm9v","more":true}`),
			},
			ControllerDeployment{
				ObjectMeta: withAnnotations(MigrationProviderConfig, `{"more":true}`),
				Helm:       &HelmControllerDeployment{RawChart: []byte("foo")},
			},
		},
		"another type": {
			gardencorev1beta1.ControllerDeployment{
				ObjectMeta: withAnnotations("a", "b"), Type: "custom", ProviderConfig: raw(`{"x":1}`),
			},
			ControllerDeployment{
				ObjectMeta: withAnnotations("a", "b", MigrationType, "custom", MigrationProviderConfig, `{"x":1}`),
			},
		},
		"helm that cannot be read": {
			gardencorev1beta1.ControllerDeployment{
				ObjectMeta: meta, Type: "helm", ProviderConfig: raw(`{"chart":"?"}`),
			},
			ControllerDeployment{
				ObjectMeta: withAnnotations(MigrationType, "helm", MigrationProviderConfig, `{"chart":"?"}`),
			},
		},
		"resources": {
			gardencorev1beta1.ControllerDeployment{
				ObjectMeta: withAnnotations(MigrationResources,
					`[{"name":"pull","resourceRef":{"kind":"Secret","name":"pull","apiVersion":"v1"}}]`),
				Type: "helm", ProviderConfig: raw(`{"chart":"Zm9v"}`), InjectGardenKubeconfig: new(true),
			},
			ControllerDeployment{
				ObjectMeta: meta, Helm: &HelmControllerDeployment{RawChart: []byte("foo")},
				InjectGardenKubeconfig: new(true),
				Resources:              []gardencorev1beta1.NamedResourceReference{namedSecret("pull")},
			},
		},
		"resources that cannot be read": {
			gardencorev1beta1.ControllerDeployment{
				ObjectMeta: withAnnotations(MigrationResources, `?`), Type: "helm",
				ProviderConfig: raw(`{"chart":"Zm9v"}`),
			},
			ControllerDeployment{
				ObjectMeta: withAnnotations(MigrationResources, `?`),
				Helm:       &HelmControllerDeployment{RawChart: []byte("foo")},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var older gardencorev1beta1.ControllerDeployment
			if err := ToV1beta1(&test.v1, &older); err != nil || !apiequality.Semantic.DeepEqual(older, test.v1beta1) {
				t.Errorf("to v1beta1: %+v, %v\nwant %+v", older, err, test.v1beta1)
			}
			var newer ControllerDeployment
			if err := FromV1beta1(&test.v1beta1, &newer); err != nil ||
				!apiequality.Semantic.DeepEqual(newer, test.v1) {
				t.Errorf("to v1: %+v, %v\nwant %+v", newer, err, test.v1)
			}
		})
	}
}

func TestOtherFormsOfHelmConfig(t *testing.T) {
	for _, config := range []string{
		`{"rawChart":"Zm9v","values":{"a":1}}`, `{"helm":{"rawChart":"Zm9v","values":{"a":1}}}`,
	} {
		var newer ControllerDeployment
		if err := FromV1beta1(&gardencorev1beta1.ControllerDeployment{Type: "helm", ProviderConfig: raw(config)},
			&newer); err != nil {
			t.Fatal(err)
		}
		if newer.Helm == nil || string(newer.Helm.RawChart) != "foo" || string(newer.Helm.Values.Raw) != `{"a":1}` ||
			len(newer.Annotations) > 0 {
			t.Errorf("%s is read as %+v", config, newer)
		}
	}
}

func TestContradictionsAreRefused(t *testing.T) {
	for want, deployment := range map[string]*ControllerDeployment{
		"together with helm": {
			ObjectMeta: withAnnotations(MigrationType, "custom"), Helm: &HelmControllerDeployment{},
		},
		"must be a JSON object": {
			ObjectMeta: withAnnotations(MigrationProviderConfig, "?"), Helm: &HelmControllerDeployment{},
		},
		"must be JSON": {ObjectMeta: withAnnotations(MigrationProviderConfig, "?")},
	} {
		if err := ToV1beta1(deployment, &gardencorev1beta1.ControllerDeployment{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want …%s…", err, want)
		}
	}
}

// Nothing is lost on the way to v1beta1 and back, and the way through the scheme is the same.
func TestConversionRoundTrip(t *testing.T) {
	scheme := newScheme(t)
	filler := randfill.New().NilChance(0.3).RandSource(rand.NewSource(1)).Funcs(
		func(json *apiextensionsv1.JSON, c randfill.Continue) {
			json.Raw = []byte(`["` + string('a'+rune(c.Intn(26))) + `"]`)
		},
		func(chart *[]byte, c randfill.Continue) { *chart = []byte{byte(c.Intn(256))} },
		func(meta *metav1.ObjectMeta, c randfill.Continue) {
			c.Fill(&meta.Name)
			c.Fill(&meta.Labels)
			c.Fill(&meta.Annotations)
			c.Fill(&meta.Generation)
		},
		func(*metav1.TypeMeta, randfill.Continue) {},
	)
	for range 200 {
		list, older, again := &ControllerDeploymentList{}, &gardencorev1beta1.ControllerDeploymentList{},
			&ControllerDeploymentList{}
		filler.Fill(&list.Items)
		before := list.DeepCopy()
		if err := scheme.Convert(list, older, nil); err != nil {
			t.Fatal(err)
		}
		if err := scheme.Convert(older, again, nil); err != nil {
			t.Fatal(err)
		}
		if !apiequality.Semantic.DeepEqual(before, list) {
			t.Fatal("the conversion has changed what it was given")
		}
		if !apiequality.Semantic.DeepEqual(list, again) {
			t.Fatalf("was %+v\nbecame %+v", list, again)
		}
	}
}
