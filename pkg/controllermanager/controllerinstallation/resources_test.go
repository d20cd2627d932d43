package controllerinstallation

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1 "github.com/trellis-garden/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestInstallationRefersToWhatGardenletReads(t *testing.T) {
	deployment := &gardencorev1beta1.ControllerDeployment{Type: "helm", ProviderConfig: runtime.RawExtension{
		Raw: []byte(`{"ociRepository":{"ref":"r.example/c:v1","pullSecretRef":{"name":"pull"},"caBundleSecretRef":{"name":"ca"}}}`),
	}}
	deployment.Annotations = map[string]string{
		gardencorev1.MigrationResources: `[{"name":"a","resourceRef":{"apiVersion":"v1","kind":"ConfigMap","name":"place"}}]`,
	}
	got, err := resourcesOf(deployment)
	want := []corev1.ObjectReference{
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "garden", Name: "place"},
		{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "pull"},
		{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "ca"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := resourcesOf(&gardencorev1beta1.ControllerDeployment{Type: "custom"}); err != nil || len(got) != 0 {
		t.Errorf("of a deployment that is not Helm's: %v, %v", got, err)
	}
}
