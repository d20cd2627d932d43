package v1

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func aDeployment() *ControllerDeployment {
	return &ControllerDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "extension", ResourceVersion: "1"},
		Helm: &HelmControllerDeployment{
			RawChart: []byte("chart"), Values: values(`{"password":"{{ .resources.pull.data.password }}"}`),
		},
		Resources: []gardencorev1beta1.NamedResourceReference{namedSecret("pull")},
	}
}

func values(json string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(json)} }

func TestValidateControllerDeployment(t *testing.T) {
	for name, test := range map[string]struct {
		change         func(*ControllerDeployment)
		field, message string
	}{
		"as it is": {func(*ControllerDeployment) {}, "", ""},
		"nothing":  {func(d *ControllerDeployment) { d.Helm = nil }, "helm", "ociRepository"},
		"another type": {
			func(d *ControllerDeployment) { d.Helm, d.ObjectMeta = nil, withAnnotations(MigrationType, "custom") }, "",
			"",
		},
		"no chart": {func(d *ControllerDeployment) { d.Helm.RawChart = nil }, "helm.rawChart", "ociRepository"},
		"two charts": {
			func(d *ControllerDeployment) { d.Helm.OCIRepository = &OCIRepository{} }, "helm.ociRepository",
			"together with rawChart",
		},
		"strange values": {
			func(d *ControllerDeployment) { d.Helm.Values = values(`[1]`) }, "helm.values", "must be an object",
		},
		"other template": {
			func(d *ControllerDeployment) { d.Helm.Values = values(`{"a":["{{ .Values.b }}"]}`) }, "helm.values.a[0]",
			".resources.<name>.data.<key>",
		},
		"unknown name": {
			func(d *ControllerDeployment) { d.Helm.Values = values(`{"a":"x{{.resources.other.data.b}}"}`) },
			"helm.values.a", `"other"`,
		},
		"stray braces": {
			func(d *ControllerDeployment) { d.Helm.Values = values(`{"a":"}} {{"}`) }, "helm.values.a", "double braces",
		},
		"name with dash": {
			func(d *ControllerDeployment) { d.Resources = append(d.Resources, namedSecret("a-b")) },
			"resources[1].name", "letters and digits",
		},
		"same name twice": {
			func(d *ControllerDeployment) { d.Resources = append(d.Resources, namedSecret("pull")) },
			"resources[1].name", "Duplicate",
		},
		"other kind": {
			func(d *ControllerDeployment) { d.Resources[0].ResourceRef.Kind = "Pod" }, "resources[0].resourceRef",
			"v1/Secret",
		},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := aDeployment()
			test.change(deployment)
			errs := ValidateControllerDeployment(deployment)
			switch {
			case test.field == "" && len(errs) > 0:
				t.Errorf("is refused: %v", errs.ToAggregate())
			case test.field != "" && (len(errs) != 1 || errs[0].Field != test.field ||
				!strings.Contains(errs[0].Error(), test.message)):
				t.Errorf("want %s: …%s…, got %v", test.field, test.message, errs)
			}
		})
	}
}

func TestMistakesInValuesAreToldTwentyAtATime(t *testing.T) {
	deployment := aDeployment()
	deployment.Helm.Values = values(strings.Repeat(`{"a":`, 1000) + `["{{"` + strings.Repeat(`,"{{"`, 100000) + `]` +
		strings.Repeat("}", 1000))
	if errs := ValidateControllerDeployment(deployment); len(errs) != maxQuotationErrors {
		t.Errorf("%d errors", len(errs))
	}
}

func TestValidateOCIRepository(t *testing.T) {
	for name, test := range map[string]struct {
		repository OCIRepository
		field, url string
	}{
		"ref": {
			OCIRepository{Ref: new("oci://registry.example.com/chart:v1")}, "", "registry.example.com/chart:v1",
		},
		"tag": {
			OCIRepository{Repository: new("registry.example.com/chart"), Tag: new("v1")}, "",
			"registry.example.com/chart:v1",
		},
		"digest wins": {
			OCIRepository{Repository: new("registry.example.com/chart"), Tag: new("v1"), Digest: new("sha256:ab")}, "",
			"registry.example.com/chart@sha256:ab",
		},
		"nothing": {OCIRepository{}, "ref", ""},
		"no tag": {
			OCIRepository{Repository: new("registry.example.com/chart")}, "tag", "registry.example.com/chart",
		},
		"ref and tag": {OCIRepository{Ref: new("a"), Tag: new("v1")}, "tag", "a"},
		"bad digest":  {OCIRepository{Repository: new("a"), Digest: new("md5:1")}, "digest", "a@md5:1"},
		"nameless pull": {
			OCIRepository{Ref: new("a"), PullSecretRef: &corev1.LocalObjectReference{}}, "pullSecretRef.name", "a",
		},
		"bad CA secrets": {
			OCIRepository{Ref: new("a"), CABundleSecretRef: &corev1.LocalObjectReference{Name: "A_"}},
			"caBundleSecretRef.name", "a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			errs := ValidateOCIRepository(&test.repository, nil)
			if test.field == "" && len(errs) > 0 ||
				test.field != "" && (len(errs) != 1 || strings.TrimPrefix(errs[0].Field, "<nil>.") != test.field) {
				t.Errorf("errors = %v, want one of %q", errs, test.field)
			}
			if got := test.repository.URL(); got != test.url {
				t.Errorf("URL = %q, want %q", got, test.url)
			}
		})
	}
}

// Whatever is sent as a ControllerDeployment in either version is decoded, converted and validated without a panic.
func FuzzDecodeControllerDeployment(f *testing.F) {
	for version, object := range map[string]any{
		"v1": aDeployment(),
		"v1beta1": &gardencorev1beta1.ControllerDeployment{
			Type: "helm", ProviderConfig: raw(`{"chart":"Zm9v","values":{"a":"{{"},"more":1}`),
		},
	} {
		data, err := json.Marshal(object)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(`{"apiVersion":"core.gardener.cloud/` + version + `","kind":"ControllerDeployment",` +
			string(data[1:])))
	}
	decoder := serializer.NewCodecFactory(newScheme(f)).UniversalDeserializer()
	f.Fuzz(func(t *testing.T, data []byte) {
		object, _, err := decoder.Decode(data, nil, nil)
		if err != nil {
			return
		}
		older, newer := &gardencorev1beta1.ControllerDeployment{}, &ControllerDeployment{}
		switch decoded := object.(type) {
		case *ControllerDeployment:
			if ToV1beta1(decoded, older) != nil {
				return
			}
		case *gardencorev1beta1.ControllerDeployment:
			older = decoded
		default:
			return
		}
		gardencorev1beta1.ValidateControllerDeployment(older)
		if err := FromV1beta1(older, newer); err != nil {
			t.Fatalf("stored objects must be readable: %v in %s", err, data)
		}
		ValidateControllerDeploymentUpdate(newer, aDeployment())
		if err := ToV1beta1(newer, &gardencorev1beta1.ControllerDeployment{}); err != nil {
			t.Fatalf("what was read cannot be written: %v in %s", err, data)
		}
	})
}
