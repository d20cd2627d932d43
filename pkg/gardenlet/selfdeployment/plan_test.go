package selfdeployment

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/charts"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/ocichart"
	"github.com/trellis-garden/trellis/pkg/helm"
)

func secret(name string) *config.SecretReference {
	return &config.SecretReference{Namespace: "garden", Name: name}
}

func runningConfig() *config.Configuration {
	return &config.Configuration{
		GardenClientConnection: config.GardenClientConnection{
			BootstrapKubeconfig: secret("first"), KubeconfigSecret: secret("own"),
		},
		Gateway: config.Gateway{Address: "192.0.2.1", TLSPort: 443},
	}
}

func gardenletWith(configuration string) *seedmanagementv1alpha1.Gardenlet {
	gardenlet := &seedmanagementv1alpha1.Gardenlet{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "europe"}}
	gardenlet.Spec.Config = &runtime.RawExtension{Raw: []byte(configuration)}
	seedmanagementv1alpha1.SetDefaultsGardenlet(gardenlet)
	return gardenlet
}

func isMistake(err error) bool {
	var found *ocichart.MistakeError
	return errors.As(err, &found)
}

// How the garden and the gateway are reached is kept; the rest is what the object says and nothing else.
func TestConfigurationOf(t *testing.T) {
	for name, test := range map[string]struct {
		said           string
		gateway, other map[string]any
	}{
		"silent": {`{}`, map[string]any{"address": "192.0.2.1", "tlsPort": int64(443)}, nil},
		"other port": {
			`{"gateway":{"tlsPort":8443}}`, map[string]any{"address": "192.0.2.1", "tlsPort": int64(8443)}, nil,
		},
		"more of it": {
			`{"controllers":{"shoot":{"concurrentSyncs":3}}}`,
			map[string]any{"address": "192.0.2.1", "tlsPort": int64(443)},
			map[string]any{"shoot": map[string]any{"concurrentSyncs": int64(3)}},
		},
		"another name": {
			`{"seedConfig":{"metadata":{"name":"asia"}}}`,
			map[string]any{"address": "192.0.2.1", "tlsPort": int64(443)}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := configurationOf(gardenletWith(test.said), runningConfig())
			if err != nil {
				t.Fatal(err)
			}
			controllers, _ := got["controllers"].(map[string]any)
			if !reflect.DeepEqual(got["gateway"], test.gateway) || !reflect.DeepEqual(controllers, test.other) {
				t.Errorf("got %v", got)
			}
			seedName, _, _ := unstructured.NestedString(got, "seedConfig", "metadata", "name")
			own, _, _ := unstructured.NestedString(got, "gardenClientConnection", "kubeconfigSecret", "name")
			if seedName != "europe" || own != "own" ||
				got["kind"] != seedmanagementv1alpha1.GardenletConfigurationKind {
				t.Errorf("got %v", got)
			}
		})
	}
}

// A configuration that gardenlet does not accept, or with which it would not reach the garden, is refused before
// anything changes.
func TestAccessIsKept(t *testing.T) {
	reconciler := &Reconciler{Seed: fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "own"},
		Data:       map[string][]byte{"kubeconfig": []byte("of another seed")},
	}).Build()}
	for name, test := range map[string]struct{ said, want string }{
		"unknown field":     {`{"gardenletControllers":{}}`, "gardenletControllers: Forbidden: there is no such field"},
		"no gateway":        {`{"gateway":{"address":""}}`, "gateway.address"},
		"unusable access":   {`{}`, "Secret garden/own"},
		"Secret is missing": {`{"gardenClientConnection":{"kubeconfigSecret":{"name":"new"}}}`, "Secret garden/new"},
		"a file":            {`{"gardenClientConnection":{"kubeconfig":"/etc/kubeconfig"}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			configuration, err := configurationOf(gardenletWith(test.said), runningConfig())
			if err != nil {
				t.Fatal(err)
			}
			err = reconciler.keepsAccess(t.Context(), configuration)
			if test.want == "" && err != nil ||
				test.want != "" && (!isMistake(err) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want …%s…", err, test.want)
			}
		})
	}
}

func TestChartOf(t *testing.T) {
	for name, want := range map[string]string{"gardenlet": "", "gateway": `holds the chart "gateway"`} {
		archive, err := helm.Pack(charts.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		_, err = chartOf(archive)
		if want == "" && err != nil || want != "" && (!isMistake(err) || !strings.Contains(err.Error(), want)) {
			t.Errorf("chart %s: %v", name, err)
		}
	}
	if _, err := chartOf([]byte("no chart")); !isMistake(err) {
		t.Errorf("no archive: %v", err)
	}
}

// The chart brings the image, and the ServiceAccount stays.
func TestValuesOf(t *testing.T) {
	for name, test := range map[string]struct {
		image       *seedmanagementv1alpha1.Image
		ofChart     string
		want        string
		wantMistake bool
	}{
		"the chart's": {nil, "registry.example/gardenlet:v1", "registry.example/gardenlet:v1", false},
		"another tag": {
			&seedmanagementv1alpha1.Image{Tag: new("v2")}, "registry.example:5000/gardenlet:v1",
			"registry.example:5000/gardenlet:v2", false,
		},
		"another one": {
			&seedmanagementv1alpha1.Image{Ref: new("mine.example/g@sha256:1")}, "registry.example/gardenlet:v1",
			"mine.example/g@sha256:1", false,
		},
		"chart without it": {nil, "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			gardenlet := gardenletWith(`{}`)
			gardenlet.Spec.Deployment.Image = test.image
			values, err := valuesOf(gardenlet, &chart.Chart{Values: map[string]any{"image": test.ofChart}},
				map[string]any{}, "present")
			if isMistake(err) != test.wantMistake {
				t.Fatal(err)
			}
			if !test.wantMistake && (values["image"] != test.want || values["serviceAccountName"] != "present" ||
				values["bootstrapKubeconfig"] != "") {
				t.Errorf("values are %v", values)
			}
		})
	}
}

func TestChecksumTellsChartsAndValuesApart(t *testing.T) {
	sums := map[string]bool{}
	for _, input := range []struct {
		archive string
		values  map[string]any
	}{{"a", map[string]any{"x": 1}}, {"b", map[string]any{"x": 1}}, {"a", map[string]any{"x": 2}}} {
		sum, err := checksumOf([]byte(input.archive), input.values)
		if err != nil {
			t.Fatal(err)
		}
		sums[sum] = true
	}
	if len(sums) != 3 {
		t.Errorf("sums are %v", sums)
	}
}
