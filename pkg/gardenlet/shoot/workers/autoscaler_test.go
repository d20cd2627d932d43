package workers

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component/clusterautoscaler"
	"github.com/trellis-garden/trellis/pkg/component/managedresources"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
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
		if got := limitsDiffer(current, plantest.New(t, plantest.Worker(test.change)).Pools); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
	if limitsDiffer(nil, plantest.New(t).Pools) {
		t.Error("without a Worker nothing changes")
	}
}

// The autoscaler goes on while nothing changes that it acts on, stops for changes and for hibernation, and goes when
// no pool needs it.
func TestRestrainAutoscalers(t *testing.T) {
	pools := []extensionsv1alpha1.WorkerPool{{Name: "pool", Minimum: 1, Maximum: 2, Zones: []string{"a"}}}
	for name, test := range map[string]struct {
		change func(*plan.Inputs)
		// want are the replicas; nil if it is to be deleted.
		want *int32
	}{
		"unchanged":      {func(*plan.Inputs) {}, new(int32(1))},
		"larger":         {plantest.Worker(func(w *gardencorev1beta1.Worker) { w.Maximum = 5 }), new(int32(0))},
		"falling asleep": {plantest.Hibernated(false), new(int32(0))},
		"fixed":          {plantest.Worker(func(w *gardencorev1beta1.Worker) { w.Maximum = 1 }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := &Workers{Plan: plantest.New(t, test.change)}
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{
				clientgoscheme.AddToScheme, extensionsv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme,
			} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			deployment := &appsv1.Deployment{
				ObjectMeta: w.Plan.Meta(clusterautoscaler.Name),
				Spec: appsv1.DeploymentSpec{
					Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: clusterautoscaler.Labels()},
				},
			}
			w.Seed = fake.NewClientBuilder().WithScheme(scheme).WithObjects(
				deployment, &extensionsv1alpha1.Worker{
					ObjectMeta: w.Plan.Meta(w.Plan.ShootName), Spec: extensionsv1alpha1.WorkerSpec{Pools: pools},
				},
				&resourcesv1alpha1.ManagedResource{ObjectMeta: w.Plan.Meta("shoot-core-cluster-autoscaler")},
			).Build()
			w.Components = &components.Builder{Seed: w.Seed, Namespace: w.Plan.Namespace}
			if err := w.restrainAutoscalers(t.Context()); err != nil {
				t.Fatal(err)
			}
			err := w.Seed.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment)
			if test.want == nil {
				if client.IgnoreNotFound(err) != nil || err == nil {
					t.Errorf("the Deployment is still there (%v)", err)
				}
				if list, err := managedresources.List(t.Context(), w.Seed, w.Plan.Namespace); err != nil ||
					len(list) > 0 {
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
