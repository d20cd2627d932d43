package controllerinstallation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestRegistrationSaysWhatThePodsOfAnExtensionMay(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := gardencorev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	registration := func(name string, annotations map[string]string) *gardencorev1beta1.ControllerRegistration {
		return &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
	}
	garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		registration("silent", nil), registration("ours", map[string]string{gardencorev1beta1.AnnotationPodSecurityEnforce: "restricted"})).Build()
	for name, want := range map[string]string{"silent": "privileged", "gone": "privileged", "ours": "restricted"} {
		if got, err := (&Reconciler{Garden: garden}).podSecurity(t.Context(), name); err != nil || got != want {
			t.Errorf("%s: level %q, %v; want %q", name, got, err, want)
		}
	}
}
