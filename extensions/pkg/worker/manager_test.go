package worker

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
