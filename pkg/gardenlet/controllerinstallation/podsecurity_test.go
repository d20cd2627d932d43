package controllerinstallation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestRegistrationSaysWhatThePodsOfAnExtensionMay(t *testing.T) {
	for want, annotations := range map[string]map[string]string{
		"privileged": nil, "restricted": {gardencorev1beta1.AnnotationPodSecurityEnforce: "restricted"},
	} {
		registration := &gardencorev1beta1.ControllerRegistration{
			ObjectMeta: metav1.ObjectMeta{Annotations: annotations},
		}
		if got := podSecurity(registration); got != want {
			t.Errorf("%v: level %q, want %q", annotations, got, want)
		}
	}
}
