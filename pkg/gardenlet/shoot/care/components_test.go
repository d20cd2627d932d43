package care

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

// A component that is in the list of those of the control plane must be there, in shoots that have it.
func TestComponentsOfTheListMustBeThere(t *testing.T) {
	controlPlane := components.ControlPlane
	t.Cleanup(func() { components.ControlPlane = controlPlane })
	components.ControlPlane = append(slices.Clip(controlPlane), components.Component{
		Name: "pretended", LeftOut: func(shoot *gardencorev1beta1.ShootSpec) bool {
			return len(shoot.Provider.Workers) == 0
		},
	})
	for name, test := range map[string]struct {
		change func(*plan.Inputs)
		isPart bool
	}{"workers": {func(*plan.Inputs) {}, true}, "workerless": {plantest.Workerless, false}} {
		in := plantest.Inputs()
		test.change(in)
		missing := workloadProblem(others(controlPlane, &in.Shoot.Spec), etcds(), &in.Shoot.Spec)
		if strings.Contains(missing.message, "Deployment pretended is missing") != test.isPart {
			t.Errorf("%s: without its Deployment the control plane has the problem %+v", name, missing)
		}
	}
}

// others are healthy Deployments of a list's components, etcds the StatefulSets.
func others(list []components.Component, shoot *gardencorev1beta1.ShootSpec) []appsv1.Deployment {
	var deployments []appsv1.Deployment
	for _, name := range components.Names(list, shoot) {
		deployments = append(deployments, appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(0))},
		})
	}
	return deployments
}

func etcds() []appsv1.StatefulSet {
	var sets []appsv1.StatefulSet
	for _, c := range components.ControlPlane {
		if c.Stage == components.Stores {
			sets = append(sets, appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Name: c.Name}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(0))},
			})
		}
	}
	return sets
}

// What the seed's watchdog keeps stopped is told: the shoot works, but nobody looks after its nodes.
func TestWhatTheWatchdogHasStoppedIsTold(t *testing.T) {
	shoot := &plantest.Inputs().Shoot.Spec
	deployments := others(components.ControlPlane, shoot)
	if problem := workloadProblem(deployments, etcds(), shoot); problem.message != "" {
		t.Fatalf("got %+v", problem)
	}
	for i := range deployments {
		if slices.Contains([]string{"kube-controller-manager", "machine-controller-manager"}, deployments[i].Name) {
			deployments[i].Annotations = map[string]string{gardencorev1beta1.AnnotationMeltdownProtectionActive: ""}
		}
	}
	problem := workloadProblem(deployments, etcds(), shoot)
	if problem.reason != "ControllersScaledDown" ||
		!strings.Contains(problem.message, ": kube-controller-manager, machine-controller-manager.") {
		t.Errorf("got %+v", problem)
	}
}

// A control plane of replicas that has lost one serves, and is told to be unhealthy: it would not outlast another loss.
func TestAMissingReplicaIsTold(t *testing.T) {
	shoot := &plantest.Inputs().Shoot.Spec
	deployments := others(components.ControlPlane, shoot)
	for i := range deployments {
		if deployments[i].Name == "kube-apiserver" {
			deployments[i].Spec.Replicas = new(int32(2))
			deployments[i].Status = appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 1}
		}
	}
	problem := workloadProblem(deployments, etcds(), shoot)
	if problem.reason != "DeploymentUnhealthy" ||
		!strings.Contains(problem.message, "kube-apiserver is unhealthy: 1 of 2 replicas are available") {
		t.Errorf("got %+v", problem)
	}
}
