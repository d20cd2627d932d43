package rebalancing

import (
	"reflect"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/apps/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
)

var (
	start = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	nginx = appsv1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "nginx"}
	role  = appsv1alpha1.ObjectReference{
		APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "reader",
	}
)

func TestObserve(t *testing.T) {
	done := appsv1alpha1.ObservedWorkload{Workload: nginx, Result: appsv1alpha1.RebalanceSuccessful}
	failed := appsv1alpha1.ObservedWorkload{
		Workload: role, Result: appsv1alpha1.RebalanceFailed, Reason: appsv1alpha1.RebalanceObjectNotFound,
	}
	tests := map[string]struct {
		known  []appsv1alpha1.ObservedWorkload
		wanted []appsv1alpha1.ObjectReference
		want   []appsv1alpha1.ObservedWorkload
	}{
		"all new, in order": {
			nil, []appsv1alpha1.ObjectReference{role, nginx},
			[]appsv1alpha1.ObservedWorkload{{Workload: nginx}, {Workload: role}},
		},
		"results stay": {
			[]appsv1alpha1.ObservedWorkload{done, failed}, []appsv1alpha1.ObjectReference{nginx, role},
			[]appsv1alpha1.ObservedWorkload{done, failed},
		},
		"a success that is not asked for": {
			[]appsv1alpha1.ObservedWorkload{done}, []appsv1alpha1.ObjectReference{role},
			[]appsv1alpha1.ObservedWorkload{done, {Workload: role}},
		},
		"a failure that is not asked for": {
			[]appsv1alpha1.ObservedWorkload{failed}, []appsv1alpha1.ObjectReference{nginx},
			[]appsv1alpha1.ObservedWorkload{{Workload: nginx}},
		},
		"asked for twice": {
			nil, []appsv1alpha1.ObjectReference{nginx, nginx}, []appsv1alpha1.ObservedWorkload{{Workload: nginx}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := observe(tc.known, tc.wanted); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

type fixture struct {
	client.Client
	t   *testing.T
	now time.Time
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1alpha1.AddToScheme, workv1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return &fixture{
		t: t, now: start, Client: fake.NewClientBuilder().
			WithScheme(scheme).WithObjects(objects...).
			WithStatusSubresource(&appsv1alpha1.WorkloadRebalancer{}).Build(),
	}
}

func (f *fixture) reconcile() reconcile.Result {
	f.t.Helper()
	r := &rebalancing{client: f.Client, now: func() time.Time { return f.now }}
	result, err := r.Reconcile(f.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "again"}})
	if err != nil {
		f.t.Fatal(err)
	}
	return result
}

func (f *fixture) status() appsv1alpha1.WorkloadRebalancerStatus {
	f.t.Helper()
	rebalancer := &appsv1alpha1.WorkloadRebalancer{}
	if err := f.Get(f.t.Context(), client.ObjectKey{Name: "again"}, rebalancer); err != nil {
		f.t.Fatal(err)
	}
	return rebalancer.Status
}

func (f *fixture) triggered() *metav1.Time {
	f.t.Helper()
	b, err := bindings.Get(f.t.Context(), f.Client, types.NamespacedName{Namespace: "shop", Name: "nginx-deployment"})
	if err != nil {
		f.t.Fatal(err)
	}
	return b.BindingSpec().RescheduleTriggeredAt
}

func rebalancer(ttl *int32, workloads ...appsv1alpha1.ObjectReference) *appsv1alpha1.WorkloadRebalancer {
	return &appsv1alpha1.WorkloadRebalancer{
		ObjectMeta: metav1.ObjectMeta{Name: "again", Generation: 1, CreationTimestamp: metav1.NewTime(start)},
		Spec:       appsv1alpha1.WorkloadRebalancerSpec{Workloads: workloads, TTLSecondsAfterFinished: ttl},
	}
}

func binding(lastScheduled time.Time) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nginx-deployment"}}
	b.Spec.Placement = &policyv1alpha1.Placement{}
	b.Spec.Resource = workv1alpha2.ObjectReference{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "nginx",
	}
	b.Status.LastScheduledTime = new(metav1.NewTime(lastScheduled))
	return b
}

func TestBindingsAreAskedOnce(t *testing.T) {
	f := newFixture(t, rebalancer(nil, nginx, role), binding(start.Add(-time.Hour)))
	f.reconcile()
	status := f.status()
	if len(status.ObservedWorkloads) != 2 || status.ObservedWorkloads[0].Result != appsv1alpha1.RebalanceSuccessful ||
		status.ObservedWorkloads[1].Reason != appsv1alpha1.RebalanceObjectNotFound || status.FinishTime == nil ||
		status.ObservedGeneration != 1 {
		t.Fatalf("status %+v", status)
	}
	if at := f.triggered(); at == nil || !at.Equal(new(metav1.NewTime(start))) {
		t.Fatalf("triggered at %v", at)
	}
	f.now = start.Add(time.Hour)
	f.reconcile()
	if at := f.triggered(); !at.Equal(new(metav1.NewTime(start))) {
		t.Errorf("asked again at %v", at)
	}
}

func TestNotInTheSecondOfTheLastDecision(t *testing.T) {
	f := newFixture(t, rebalancer(nil, nginx), binding(start))
	f.now = start.Add(300 * time.Millisecond)
	if wait := f.reconcile().RequeueAfter; wait != 700*time.Millisecond || f.triggered() != nil ||
		f.status().FinishTime != nil {
		t.Fatalf("waits %v, triggered %v", wait, f.triggered())
	}
	f.now = start.Add(time.Second)
	if f.reconcile(); f.triggered() == nil || f.status().FinishTime == nil {
		t.Error("not asked")
	}
}

func TestRemovedWhenOld(t *testing.T) {
	f := newFixture(t, rebalancer(new(int32(60)), nginx), binding(start.Add(-time.Hour)))
	if wait := f.reconcile().RequeueAfter; wait != time.Minute {
		t.Fatalf("waits %v", wait)
	}
	f.now = start.Add(time.Minute)
	f.reconcile()
	if err := f.Get(t.Context(), client.ObjectKey{Name: "again"},
		&appsv1alpha1.WorkloadRebalancer{}); !apierrors.IsNotFound(err) {
		t.Errorf("still there: %v", err)
	}
}
