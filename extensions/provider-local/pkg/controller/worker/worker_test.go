package worker

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-garden/trellis/extensions/pkg/worker"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/golden"
)

// A pool that asks for volumes that its machines would not have is refused, with its name and what to do.
func TestDataVolumesAreRefused(t *testing.T) {
	pool := extensionsv1alpha1.WorkerPool{Name: "pool", DataVolumes: []extensionsv1alpha1.DataVolume{{Name: "data"}}}
	_, err := delegate{}.ProviderSpec(t.Context(), worker.Scope{}, pool, "")
	if err == nil || !strings.Contains(err.Error(), "pool pool: dataVolumes") ||
		!strings.Contains(err.Error(), "leave dataVolumes out") {
		t.Errorf("got %v", err)
	}
}

func TestManagerInFull(t *testing.T) {
	d := delegate{volumesDir: "/var/lib/local-cloud/machine-volumes"}
	scope := worker.Scope{
		Worker: &extensionsv1alpha1.Worker{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--demo--one", Name: "one"}},
	}
	pod := &corev1.PodSpec{
		AutomountServiceAccountToken: new(true),
		SecurityContext: &corev1.PodSecurityContext{
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{
			{Name: worker.ControllerName, SecurityContext: component.HardenedContainer()},
		},
	}
	if err := d.ExtendPod(scope, pod); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "machine-controller",
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--demo--one", Name: worker.ManagerName}, Spec: *pod})
}
