package controllers

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/rollouts"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
	"github.com/trellis-garden/trellis/pkg/federation/ownwrites"
	"github.com/trellis-garden/trellis/pkg/federation/reservations"
	"github.com/trellis-garden/trellis/pkg/federation/wake"
)

// statusFixture is a fleet of one member with one Deployment, whose binding has a placement and no decision yet.
type statusFixture struct {
	t      *testing.T
	client client.Client
	now    time.Time
	events *events.FakeRecorder
	// writes of the binding's status.
	writes int
}

func newStatusFixture(t *testing.T) *statusFixture {
	t.Helper()
	scheme := fleetscheme.Scheme()
	f := &statusFixture{t: t, events: events.NewFakeRecorder(10), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	b := &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment", Generation: 1},
	}
	b.Spec.Resource = workv1alpha2.ObjectReference{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web",
	}
	b.Spec.Placement = &policyv1alpha1.Placement{}
	b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{}}
	f.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(b, &workv1alpha1.Work{}).
		WithIndex(&workv1alpha1.Work{}, workBindingIndex, indexWork).
		WithObjects(b, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}},
			&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, resource string, object client.Object,
				patch client.Patch, options ...client.SubResourcePatchOption) error {
				if _, ok := object.(bindings.Binding); ok {
					f.writes++
				}
				return c.SubResource(resource).Patch(ctx, object, patch, options...)
			},
		}).Build()
	return f
}

func (f *statusFixture) binding() *workv1alpha2.ResourceBinding {
	f.t.Helper()
	b := &workv1alpha2.ResourceBinding{}
	if err := f.client.Get(context.Background(), client.ObjectKey{Namespace: "shop", Name: "web-deployment"},
		b); err != nil {
		f.t.Fatal(err)
	}
	return b
}

// reconcile by a controller that knows nothing but what the API tells, and give the Works that there are then.
func (f *statusFixture) reconcile() []workv1alpha1.Work {
	f.t.Helper()
	now := func() time.Time { return f.now }
	w := &works{
		client: f.client, events: f.events, interpreter: interpreter.New(), now: now, index: wake.NewIndex(),
		rollouts: &rollouts.Rollouts{}, written: ownwrites.New(f.client, now), delay: newReportDelay(now),
		reservations: reservations.New(now, time.Minute),
	}
	if _, err := w.Reconcile(context.Background(),
		reconcile.Request{NamespacedName: client.ObjectKeyFromObject(f.binding())}); err != nil {
		f.t.Fatal(err)
	}
	var list workv1alpha1.WorkList
	if err := f.client.List(context.Background(), &list); err != nil {
		f.t.Fatal(err)
	}
	return list.Items
}

func (f *statusFixture) decide(decision outcome) {
	f.t.Helper()
	b := f.binding()
	if _, _, err := enter(b, decision, f.now); err != nil {
		f.t.Fatal(err)
	}
	if err := f.client.Update(context.Background(), b); err != nil {
		f.t.Fatal(err)
	}
}

// report what a member says of its copy.
func (f *statusFixture) report(work workv1alpha1.Work, health workv1alpha1.ResourceHealth) {
	f.t.Helper()
	meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
		Type: workv1alpha1.ConditionApplied, Status: metav1.ConditionTrue, Reason: "AppliedSuccessful",
		ObservedGeneration: work.Generation,
	})
	work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: health}}
	if err := f.client.Status().Update(context.Background(), &work); err != nil {
		f.t.Fatal(err)
	}
}

// Each step is made by a process that has just started: what was decided, and what members said, is told in one write.
func TestTheStatusFollowsFromWhatIsStored(t *testing.T) {
	f := newStatusFixture(t)
	if works := f.reconcile(); len(works) != 0 || f.writes != 0 {
		t.Fatalf("before the first decision: %d Works, %d writes", len(works), f.writes)
	}
	f.decide(outcome{
		clusters: []workv1alpha2.TargetCluster{{Name: "m1"}}, reason: workv1alpha2.ReasonSuccess,
		message: "placed on m1",
		report:  &workv1alpha2.PlacementDecision{Strategy: "Duplicated"},
	})
	works := f.reconcile()
	if len(works) != 1 || f.writes != 0 {
		t.Fatalf("decided: %d Works, %d writes", len(works), f.writes)
	}
	f.report(works[0], workv1alpha1.ResourceUnhealthy)
	f.reconcile()
	status := f.binding().Status
	if f.writes != 1 || !meta.IsStatusConditionTrue(status.Conditions, workv1alpha2.ConditionScheduled) ||
		status.Decision.Strategy != "Duplicated" ||
		!meta.IsStatusConditionTrue(status.Conditions, workv1alpha2.ConditionFullyApplied) ||
		len(status.AggregatedStatus) != 1 || len(status.UnhealthyCopies) != 1 {
		t.Fatalf("%d writes: %+v", f.writes, status)
	}
	f.reconcile()
	if f.writes != 1 {
		t.Errorf("%d writes although nothing changed", f.writes)
	}
}

// What lost its policy is told nothing about by the scheduler any more.
func TestTheStatusForgetsADecisionWithItsPlacement(t *testing.T) {
	f := newStatusFixture(t)
	f.decide(outcome{reason: workv1alpha2.ReasonNoClusterFit, message: "no cluster"})
	f.reconcile()
	if scheduled := meta.FindStatusCondition(f.binding().Status.Conditions,
		workv1alpha2.ConditionScheduled); scheduled == nil || scheduled.Status != metav1.ConditionFalse {
		t.Fatalf("told: %+v", scheduled)
	}
	p := &propagation{client: f.client, interpreter: interpreter.New()}
	template := &unstructured.Unstructured{
		Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"namespace": "shop", "name": "web"},
		},
	}
	if err := p.keepRequired(context.Background(), template, f.binding()); err != nil {
		t.Fatal(err)
	}
	f.reconcile()
	b := f.binding()
	if scheduled := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.ConditionScheduled); scheduled != nil ||
		b.Status.LastScheduledTime != nil || b.Annotations[workv1alpha2.DecisionAnnotation] != "" {
		t.Errorf("left: %v, %+v", b.Annotations, b.Status)
	}
}

// Who deletes an object is told what stays of it in members, and why.
func TestWhatStaysOfObjectsThatGoIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		ready    metav1.ConditionStatus
		preserve *bool
		want     string
	}{
		"ready": {metav1.ConditionTrue, nil, ""},
		"away": {
			metav1.ConditionUnknown, nil, "Warning RemovalPending Deployment web stays until it can be removed: not " +
				"ready at this time, in m1",
		},
		"preserved": {
			metav1.ConditionTrue, new(true),
			"Normal ObjectPreserved Deployment web stays because of spec.preserveResourcesOnDeletion, in m1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newStatusFixture(t)
			b := f.binding()
			b.Finalizers, b.Spec.PreserveResourcesOnDeletion = []string{workv1alpha2.Finalizer}, test.preserve
			if err := f.client.Update(context.Background(), b); err != nil {
				t.Fatal(err)
			}
			f.decide(outcome{clusters: []workv1alpha2.TargetCluster{{Name: "m1"}}, reason: workv1alpha2.ReasonSuccess})
			f.reconcile()
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
			if err := f.client.Get(context.Background(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
				t.Fatal(err)
			}
			setReady(&cluster.Status, test.ready, "Test", "")
			if err := errors.Join(f.client.Update(context.Background(), cluster),
				f.client.Delete(context.Background(), f.binding())); err != nil {
				t.Fatal(err)
			}
			f.reconcile()
			f.reconcile() // The Work waits for its member, and nothing is told again.
			var told []string
			for len(f.events.Events) > 0 {
				told = append(told, <-f.events.Events)
			}
			if test.want == "" && len(told) > 0 ||
				test.want != "" && !slices.Equal(told, []string{test.want, test.want}) {
				t.Errorf("told: %q", told)
			}
		})
	}
}
