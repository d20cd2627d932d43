package component

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A StatefulSet starts with the replicas that it had, however often it was stopped: with fewer, its members would wait
// for each other. A Deployment starts with one.
func TestWhatWasStoppedStarts(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "part"}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "part"}}
	set := func(replicas int32) client.Object {
		return &appsv1.StatefulSet{
			ObjectMeta: *meta.DeepCopy(), Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Selector: selector},
		}
	}
	for name, test := range map[string]struct {
		object client.Object
		want   int32
	}{
		"StatefulSet of one":   {set(1), 1},
		"StatefulSet of three": {set(3), 3},
		"Deployment of two": {
			&appsv1.Deployment{
				ObjectMeta: *meta.DeepCopy(), Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: selector},
			}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithObjects(test.object).Build()
			named := func() client.Object {
				if _, ok := test.object.(*appsv1.StatefulSet); ok {
					return &appsv1.StatefulSet{ObjectMeta: *meta.DeepCopy()}
				}
				return &appsv1.Deployment{ObjectMeta: *meta.DeepCopy()}
			}
			for range 2 {
				if err := Stop(t.Context(), c, named()); err != nil {
					t.Fatal(err)
				}
				if got := replicasIn(t, c, named()); got != 0 {
					t.Fatalf("stopped, it has %d replicas", got)
				}
			}
			for range 2 {
				if err := Start(t.Context(), c, named()); err != nil {
					t.Fatal(err)
				}
				if got := replicasIn(t, c, named()); got != test.want {
					t.Errorf("started, it has %d replicas, want %d", got, test.want)
				}
			}
		})
	}
}

// What grows again after it was stopped is started as it was stopped last.
func TestWhatWasStoppedLastCounts(t *testing.T) {
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "part"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "part"}},
		},
	}
	c := fake.NewClientBuilder().WithObjects(set).Build()
	for _, replicas := range []int32{2, 3} {
		if err := Scale(t.Context(), c, set, replicas); err != nil {
			t.Fatal(err)
		}
		if err := Stop(t.Context(), c, set); err != nil {
			t.Fatal(err)
		}
		if err := Start(t.Context(), c, set); err != nil {
			t.Fatal(err)
		}
		if got := replicasIn(t, c, set); got != replicas {
			t.Errorf("%d replicas, want %d", got, replicas)
		}
	}
}

// Nothing that is not there can be stopped, and that is fine; it cannot be started.
func TestNothingIsStopped(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other"}}).Build()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "part"}}
	if err := Stop(t.Context(), c, set); err != nil {
		t.Error(err)
	}
	if err := Start(t.Context(), c, set); err == nil {
		t.Error("what is not there was started")
	}
}

func replicasIn(t *testing.T, c client.Client, object client.Object) int32 {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	if set, ok := object.(*appsv1.StatefulSet); ok {
		return *set.Spec.Replicas
	}
	return *object.(*appsv1.Deployment).Spec.Replicas
}
