package components

import (
	"slices"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/clusterautoscaler"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubecontrollermanager"
)

// Every component is told apart by its name, and made by one of its functions.
func TestComponentsAreWhole(t *testing.T) {
	names := map[string]bool{}
	for _, c := range slices.Concat(ControlPlane, System) {
		if names[c.Name] {
			t.Errorf("two components are called %s", c.Name)
		}
		names[c.Name] = true
		inShoot := slices.ContainsFunc(System, func(s Component) bool { return s.Name == c.Name })
		if inShoot != (c.Recipe.Objects != nil) || inShoot && c.Recipe.Build != nil {
			t.Errorf("%s is not made by what makes components of its list", c.Name)
		}
	}
}

// What the gardenlet deploys into a control plane has a priority class that it makes, and etcd and kube-apiserver have
// more than all that waits for them.
func TestPriorities(t *testing.T) {
	values := map[string]int32{}
	for _, object := range component.SeedPriorityClasses() {
		values[object.GetName()] = object.(*schedulingv1.PriorityClass).Value
	}
	first, others := values[component.PriorityControlPlane500], 0
	for _, c := range ControlPlane {
		value, found := values[c.PriorityClass]
		isFirst := c.Stage == Stores || c.Stage == APIServers
		switch {
		case c.Recipe.Build == nil && c.PriorityClass == "":
		case !found:
			t.Errorf("%s has the priority class %q, which no seed has", c.Name, c.PriorityClass)
		case isFirst != (value == first) || value > first:
			t.Errorf("%s has %d, and etcd and kube-apiserver have %d", c.Name, value, first)
		case !isFirst:
			others++
		}
	}
	if others < 4 {
		t.Errorf("only %d components were compared", others)
	}
}

// The list says which class the values have.
func TestPriorityClassesReachTheValues(t *testing.T) {
	values := Decide(component.Facts{}, &gardencorev1beta1.ShootSpec{})
	if got := ValuesOf[etcdcomponent.Values](values, "etcd-main").PriorityClass; got !=
		component.PriorityControlPlane500 {
		t.Errorf("etcd-main has the priority class %q", got)
	}
	if got := ValuesOf[kubecontrollermanager.Values](values, kubecontrollermanager.Name).PriorityClass; got !=
		component.PriorityControlPlane300 {
		t.Errorf("%s has the priority class %q", kubecontrollermanager.Name, got)
	}
}

// What parts with replicas have beside their Deployment goes with it.
func TestBudgetsGoWithTheirParts(t *testing.T) {
	for _, c := range slices.Concat(Of(APIServers), Of(Controllers), Of(Autoscalers)) {
		if c.Recipe.Build == nil {
			continue
		}
		budget := component.DisruptionBudget("ns", c.Name, nil)
		seed := fake.NewClientBuilder().WithScheme(apis.SeedScheme()).WithObjects(budget).Build()
		if err := c.Build(&Builder{Seed: seed, Namespace: "ns"}).Destroy(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := seed.Get(t.Context(), client.ObjectKeyFromObject(budget), budget); !apierrors.IsNotFound(err) {
			t.Errorf("%s is gone, and its PodDisruptionBudget is not: %v", c.Name, err)
		}
	}
}

func TestAutoscaledShoots(t *testing.T) {
	for name, test := range map[string]struct {
		workers []gardencorev1beta1.Worker
		want    bool
	}{
		"none":  {nil, false},
		"fixed": {[]gardencorev1beta1.Worker{{Minimum: 2, Maximum: 2}}, false},
		"some":  {[]gardencorev1beta1.Worker{{Minimum: 2, Maximum: 2}, {Maximum: 1}}, true},
	} {
		shoot := &gardencorev1beta1.ShootSpec{Provider: gardencorev1beta1.Provider{Workers: test.workers}}
		if got := slices.Contains(Names(ControlPlane, shoot), clusterautoscaler.Name); got != test.want {
			t.Errorf("%s: the cluster-autoscaler is part of it: %v, want %v", name, got, test.want)
		}
	}
}

// Etcds have an authority for their members beside that of their clients, be there several yet or not: one that grows
// is not to be replaced for it.
func TestAuthoritiesOfPeers(t *testing.T) {
	single := &gardencorev1beta1.ShootSpec{}
	several := &gardencorev1beta1.ShootSpec{ControlPlane: &gardencorev1beta1.ControlPlane{
		HighAvailability: &gardencorev1beta1.HighAvailability{FailureTolerance: gardencorev1beta1.FailureTolerance{
			Type: gardencorev1beta1.FailureToleranceTypeNode,
		}},
	}}
	got, want := Authorities(several), Authorities(single)
	if !slices.Equal(got, want) || !slices.Contains(want, component.CAETCDPeer) {
		t.Errorf("got %q with several members, and %q with one", got, want)
	}
}
