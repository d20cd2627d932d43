package controllerinstallation

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1 "github.com/trellis-garden/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/ocichart"
	"github.com/trellis-garden/trellis/pkg/helm"
)

// inGarden returns a source of charts in a garden with the given objects. Pulling a chart returns its reference.
func inGarden(objects ...client.Object) chartSource {
	return chartSource{
		garden: fake.NewClientBuilder().WithObjects(objects...).Build(),
		pull: func(_ context.Context, artifact helm.Artifact) ([]byte, error) {
			return fmt.Appendf(nil, "%s with %s and %s", artifact.Reference, artifact.DockerConfig, artifact.CABundle),
				nil
		},
	}
}

func inGardenNamespace(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: gardencorev1beta1.GardenNamespace, Name: name}
}

func deploymentWith(config string) *gardencorev1beta1.ControllerDeployment {
	return &gardencorev1beta1.ControllerDeployment{
		Type: "helm", ProviderConfig: runtime.RawExtension{Raw: []byte(config)},
	}
}

func TestFindChart(t *testing.T) {
	chart := base64.StdEncoding.EncodeToString([]byte("archive"))
	garden := inGarden(
		&corev1.Secret{
			ObjectMeta: inGardenNamespace("pull"), Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte("login")},
		},
		&corev1.Secret{ObjectMeta: inGardenNamespace("ca"), Data: map[string][]byte{"bundle.crt": []byte("authority")}},
	)
	for name, test := range map[string]struct{ config, want, err string }{
		"published form":          {config: `{"chart":"` + chart + `","values":{"a":1}}`, want: "archive"},
		"form of v1":              {config: `{"helm":{"rawChart":"` + chart + `","values":{"a":1}}}`, want: "archive"},
		"raw chart beside values": {config: `{"rawChart":"` + chart + `","values":{"a":1}}`, want: "archive"},
		"in a registry": {
			config: `{"ociRepository":{"ref":"r.example/c:v1"},"values":{"a":1}}`, want: "r.example/c:v1 with  and ",
		},
		"in a private registry": {
			config: `{"ociRepository":{"repository":"r.example/c","tag":"v1","pullSecretRef":{"name":"pull"},"caBundleSecretRef":{"name":"ca"}},"values":{"a":1}}`,
			want:   "r.example/c:v1 with login and authority",
		},
		"no chart":   {config: `{"values":{"a":1}}`, err: "holds neither a chart"},
		"not base64": {config: `{"chart":"?"}`, err: "is not supported"},
		"no pull secret": {
			config: `{"ociRepository":{"ref":"r.example/c:v1","pullSecretRef":{"name":"none"}}}`,
			err:    "Secret garden/none does not exist",
		},
		"no such key": {
			config: `{"ociRepository":{"ref":"r.example/c:v1","caBundleSecretRef":{"name":"pull"}}}`,
			err:    `Secret garden/pull has no key "bundle.crt"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := garden.find(t.Context(), deploymentWith(test.config))
			if test.err != "" {
				var invalid *ocichart.MistakeError
				if !errors.As(err, &invalid) || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error %v, want the operator's mistake %q", err, test.err)
				}
				return
			}
			if err != nil || string(got.archive) != test.want || got.values["a"] == nil {
				t.Errorf("got %s, %v, %v", got.archive, got.values, err)
			}
		})
	}
	other := &gardencorev1beta1.ControllerDeployment{Type: "kustomize"}
	if _, err := garden.find(t.Context(), other); err == nil ||
		!strings.Contains(err.Error(), `type "kustomize" is not supported`) {
		t.Errorf("a type that is not supported: %v", err)
	}
}

func TestValuesQuoteResources(t *testing.T) {
	garden := inGarden(
		&corev1.Secret{ObjectMeta: inGardenNamespace("account"), Data: map[string][]byte{"user": []byte("alice")}},
		&corev1.ConfigMap{ObjectMeta: inGardenNamespace("place"), Data: map[string]string{"endpoint": "https://there"}},
	)
	deployment :=
		deploymentWith(`{"rawChart":"YQ==","values":{"user":"{{ .resources.account.data.user }}","at":["{{ .resources.place.data.endpoint }}/v1"]}}`)
	deployment.Annotations = map[string]string{gardencorev1.MigrationResources: `[
		{"name":"account","resourceRef":{"apiVersion":"v1","kind":"Secret","name":"account"}},
		{"name":"place","resourceRef":{"apiVersion":"v1","kind":"ConfigMap","name":"place"}}]`}
	got, err := garden.find(t.Context(), deployment)
	want := map[string]any{"user": "alice", "at": []any{"https://there/v1"}}
	if err != nil || !reflect.DeepEqual(got.values, want) {
		t.Errorf("got %v, %v", got.values, err)
	}
	_, err = inGarden().find(t.Context(), deployment)
	var invalid *ocichart.MistakeError
	if !errors.As(err, &invalid) ||
		!strings.Contains(err.Error(), `resource "account": Secret garden/account does not exist`) {
		t.Errorf("without the Secret: %v", err)
	}
}
