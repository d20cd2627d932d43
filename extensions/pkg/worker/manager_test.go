package worker

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/golden"
)

func TestManager(t *testing.T) {
	options := Options{
		MachineControllerManager: "machine-controller-manager:1",
		MachineController:        corev1.Container{Image: "provider:1", Args: []string{"machine-controller"}},
	}
	options.Tuning.setDefaults()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--demo--one", Name: ManagerName}}
	none := component.Availability{}
	(&actuator{options: options}).fillDeployment(deployment, "generic-token-kubeconfig", none)
	golden.Check(t, "manager", deployment)
	deployment = &appsv1.Deployment{ObjectMeta: deployment.ObjectMeta}
	(&actuator{options: options}).fillDeployment(deployment, "generic-token-kubeconfig", highlyAvailable)
	golden.Check(t, "manager-highly-available", deployment)
}

// highlyAvailable outlasts the loss of a node.
var highlyAvailable = component.Availability{Tolerance: gardencorev1beta1.FailureToleranceTypeNode}

// Pods of before elect no leader, and must be gone before those begin that do. Kubernetes sees to that where a
// Deployment is updated by recreation.
func TestManagersThatElectBeginWhenOthersAreGone(t *testing.T) {
	deployment := &appsv1.Deployment{}
	for _, availability := range []component.Availability{{}, highlyAvailable} {
		actuatorOf(nil).fillDeployment(deployment, "generic-token-kubeconfig", availability)
		if got := deployment.Spec.Strategy.Type; got != appsv1.RecreateDeploymentStrategyType {
			t.Errorf("%+v: updates by %s", availability, got)
		}
	}
}

// The programs may hold their own Leases, and those only, and only where they elect.
func TestManagersMayHoldTheirOwnLeases(t *testing.T) {
	leases := func(availability component.Availability) map[string][]string {
		verbs := map[string][]string{}
		for _, rule := range seedRules(availability) {
			if !slices.Contains(rule.Resources, "leases") {
				continue
			}
			for _, verb := range rule.Verbs {
				verbs[verb] = rule.ResourceNames
			}
		}
		return verbs
	}
	if got := leases(component.Availability{}); len(got) > 0 {
		t.Errorf("who elects no leader may do %v with Leases", got)
	}
	own := []string{"machine-controller-manager", "machine-controller", "machine-controller-companions"}
	want := map[string][]string{"create": nil, "get": own, "update": own}
	if got := leases(highlyAvailable); !apiequality.Semantic.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What is beside the replicas comes with them and goes with them.
func TestReplicasOfTheManager(t *testing.T) {
	shoot := shootOf(false)
	shoot.Shoot.Spec.ControlPlane = &gardencorev1beta1.ControlPlane{
		HighAvailability: &gardencorev1beta1.HighAvailability{
			FailureTolerance: gardencorev1beta1.FailureTolerance{Type: highlyAvailable.Tolerance},
		},
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: driverLease}}
	c := seed(t, lease)
	a := actuatorOf(c)
	if err := a.deployManager(t.Context(), Scope{Worker: workerOf(), Cluster: shoot}); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKey{Namespace: technicalID, Name: ManagerName}
	deployment := &appsv1.Deployment{}
	if err := c.Get(t.Context(), key, deployment); err != nil || *deployment.Spec.Replicas != component.Pair {
		t.Errorf("%v replicas, %v", deployment.Spec.Replicas, err)
	}
	if err := c.Get(t.Context(), key, &policyv1.PodDisruptionBudget{}); err != nil {
		t.Error(err)
	}
	if err := a.destroyManager(t.Context(), technicalID); err != nil {
		t.Fatal(err)
	}
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &policyv1.PodDisruptionBudgetList{}, &coordinationv1.LeaseList{},
	} {
		if err := c.List(t.Context(), list); err != nil || meta.LenList(list) > 0 {
			t.Errorf("%T: %d are left, %v", list, meta.LenList(list), err)
		}
	}
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
	(&actuator{options: options}).fillDeployment(deployment, "generic-token-kubeconfig", highlyAvailable)
	if got := *deployment.Spec.Replicas; got != 0 {
		t.Errorf("%d replicas", got)
	}
	if got := deployment.Spec.Template.Spec.Containers[0].Image; got != options.MachineControllerManager {
		t.Errorf("image %s", got)
	}
}
