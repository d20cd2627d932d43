package worker

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component/golden"
)

func TestManager(t *testing.T) {
	options := Options{
		MachineControllerManager: "machine-controller-manager:1",
		MachineController:        corev1.Container{Image: "provider:1", Args: []string{"machine-controller"}},
	}
	options.Tuning.setDefaults()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--demo--one", Name: ManagerName}}
	(&actuator{options: options}).fillDeployment(deployment, "generic-token-kubeconfig")
	golden.Check(t, "manager", deployment)
}

// What the seed's watchdog has stopped is not started when a Worker is reconciled; all else of it is brought up to
// date.
func TestManagerStaysStopped(t *testing.T) {
	options := Options{
		MachineControllerManager: "machine-controller-manager:2",
		MachineController:        corev1.Container{Image: "provider:1"},
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shoot--demo--one", Name: ManagerName,
		Annotations: map[string]string{gardencorev1beta1.AnnotationMeltdownProtectionActive: ""},
	}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(0))}}
	(&actuator{options: options}).fillDeployment(deployment, "generic-token-kubeconfig")
	if got := *deployment.Spec.Replicas; got != 0 {
		t.Errorf("%d replicas", got)
	}
	if got := deployment.Spec.Template.Spec.Containers[0].Image; got != options.MachineControllerManager {
		t.Errorf("image %s", got)
	}
}
