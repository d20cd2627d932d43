package shoot

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component/clusterautoscaler"
)

func TestLimitsDiffer(t *testing.T) {
	current := []extensionsv1alpha1.WorkerPool{{Name: "pool", Minimum: 1, Maximum: 2, Zones: []string{"a"}}}
	for name, test := range map[string]struct {
		change func(*gardencorev1beta1.Worker)
		want   bool
	}{
		"the same":     {func(*gardencorev1beta1.Worker) {}, false},
		"minimum":      {func(w *gardencorev1beta1.Worker) { w.Minimum = 0 }, true},
		"maximum":      {func(w *gardencorev1beta1.Worker) { w.Maximum = 3 }, true},
		"zones":        {func(w *gardencorev1beta1.Worker) { w.Zones = []string{"a", "b"} }, true},
		"another pool": {func(w *gardencorev1beta1.Worker) { w.Name, w.Maximum = "other", 9 }, false},
		"labels":       {func(w *gardencorev1beta1.Worker) { w.Labels = map[string]string{"a": "b"} }, false},
	} {
		if got := limitsDiffer(current, operation(t, worker(test.change)).Plan.Pools); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
	if limitsDiffer(nil, operation(t, func(*Inputs) {}).Plan.Pools) {
		t.Error("without a Worker nothing changes")
	}
}

// The autoscaler goes on while nothing changes that it acts on, stops for changes and for hibernation, and goes when no pool needs it.
func TestRestrainAutoscaler(t *testing.T) {
	pools := []extensionsv1alpha1.WorkerPool{{Name: "pool", Minimum: 1, Maximum: 2, Zones: []string{"a"}}}
	for name, test := range map[string]struct {
		change func(*Inputs)
		// want are the replicas; nil if it is to be deleted.
		want *int32
	}{
		"unchanged":      {func(*Inputs) {}, ptr.To[int32](1)},
		"larger":         {worker(func(w *gardencorev1beta1.Worker) { w.Maximum = 5 }), ptr.To[int32](0)},
		"falling asleep": {hibernated(false), ptr.To[int32](0)},
		"fixed":          {worker(func(w *gardencorev1beta1.Worker) { w.Maximum = 1 }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := operation(t, test.change)
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, extensionsv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			deployment := &appsv1.Deployment{ObjectMeta: o.meta(clusterautoscaler.Name), Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)}}
			o.Seed = fake.NewClientBuilder().WithScheme(scheme).WithObjects(
				deployment, &extensionsv1alpha1.Worker{ObjectMeta: o.meta(o.Plan.ShootName), Spec: extensionsv1alpha1.WorkerSpec{Pools: pools}},
				&resourcesv1alpha1.ManagedResource{ObjectMeta: o.meta(resourceClusterAutoscaler)},
			).Build()
			if err := o.restrainAutoscaler(t.Context()); err != nil {
				t.Fatal(err)
			}
			err := o.Seed.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment)
			if test.want == nil {
				if client.IgnoreNotFound(err) != nil || err == nil {
					t.Errorf("the Deployment is still there (%v)", err)
				}
				if list, err := o.managedResources(t.Context()); err != nil || len(list) > 0 {
					t.Errorf("%d ManagedResources are left (%v)", len(list), err)
				}
				return
			}
			if err != nil || *deployment.Spec.Replicas != *test.want {
				t.Errorf("got %d replicas (%v), want %d", *deployment.Spec.Replicas, err, *test.want)
			}
		})
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
		if got := slices.Contains(componentsOf(controlPlaneComponents, shoot), clusterautoscaler.Name); got != test.want {
			t.Errorf("%s: the cluster-autoscaler is part of it: %v, want %v", name, got, test.want)
		}
	}
}
