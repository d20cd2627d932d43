package failover

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/failover"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

const testIndex = "binding"

// world is a fleet of m1 and m2 with one binding, and a clock.
type world struct {
	t       *testing.T
	client  client.Client
	objects *objects
	taints  *taints
	now     time.Time
}

func newWorld(t *testing.T, change func(*workv1alpha2.ResourceBinding)) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, clusterv1alpha1.AddToScheme, policyv1alpha1.AddToScheme, workv1alpha1.AddToScheme,
		workv1alpha2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", Generation: 1}}
	b.Spec.Resource = workv1alpha2.ObjectReference{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: "ns", Name: "b",
	}
	b.Spec.Replicas, b.Spec.Placement = 2, &policyv1alpha1.Placement{}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}}
	if change != nil {
		change(b)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&workv1alpha2.ResourceBinding{}, &clusterv1alpha1.Cluster{}).
		WithIndex(&workv1alpha1.Work{}, testIndex, func(object client.Object) []string {
			key, _ := bindings.OfWork(object.(*workv1alpha1.Work))
			return []string{key.String()}
		}).
		WithObjects(b, testCluster("m1"), testCluster("m2")).Build()
	w := &world{t: t, client: c, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return w.now }
	options := DefaultOptions()
	w.objects = &objects{
		client: c, events: events.NewFakeRecorder(100), now: clock, options: options,
		pace: newPace(options.EvictionRate), workIndex: testIndex,
	}
	w.taints = &taints{client: c, events: events.NewFakeRecorder(100), now: clock, options: options}
	return w
}

func testCluster(name string) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	cluster.Status.KubernetesVersion = "v1.36.0"
	cluster.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
	}
	cluster.Status.Conditions = []metav1.Condition{
		{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "ClusterReady"},
	}
	return cluster
}

func (w *world) binding() *workv1alpha2.ResourceBinding {
	w.t.Helper()
	b := &workv1alpha2.ResourceBinding{}
	if err := w.client.Get(context.Background(), types.NamespacedName{Namespace: "ns", Name: "b"}, b); err != nil {
		w.t.Fatal(err)
	}
	return b
}

// reconcile first the clusters, then the binding, as one that nobody else works on.
func (w *world) reconcile() reconcile.Result {
	w.t.Helper()
	for _, name := range []string{"m1", "m2"} {
		if _, err := w.taints.Reconcile(context.Background(),
			reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}); err != nil {
			w.t.Fatal(err)
		}
	}
	result, err := w.objects.Reconcile(context.Background(),
		reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "b"}})
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

// ready says whether a cluster answers, from now on.
func (w *world) ready(name string, status metav1.ConditionStatus) {
	w.t.Helper()
	cluster := &clusterv1alpha1.Cluster{}
	if err := w.client.Get(context.Background(), types.NamespacedName{Name: name}, cluster); err != nil {
		w.t.Fatal(err)
	}
	cluster.Status.Conditions = []metav1.Condition{
		{
			Type: clusterv1alpha1.ConditionReady, Status: status, Reason: "Test",
			LastTransitionTime: metav1.NewTime(w.now),
		},
	}
	if err := w.client.Status().Update(context.Background(), cluster); err != nil {
		w.t.Fatal(err)
	}
}

// schedule writes a decision, and that the copies are as healthy as given.
func (w *world) schedule(health workv1alpha2.ResourceHealth, clusters ...string) {
	w.t.Helper()
	b := w.binding()
	b.Spec.Clusters = nil
	for _, name := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: name, Replicas: 2})
	}
	if err := w.client.Update(context.Background(), b); err != nil {
		w.t.Fatal(err)
	}
	w.observe(health)
}

// observe writes that the scheduler is content, and that the copies are as healthy as given.
func (w *world) observe(health workv1alpha2.ResourceHealth) {
	w.t.Helper()
	b := w.binding()
	b.Status.SchedulerObservedGeneration, b.Status.AggregatedGeneration = b.Generation, b.Generation
	b.Status.Conditions = []metav1.Condition{
		{
			Type: workv1alpha2.ConditionScheduled, Status: metav1.ConditionTrue, Reason: workv1alpha2.ReasonSuccess,
			LastTransitionTime: metav1.NewTime(w.now),
		},
	}
	b.Status.AggregatedStatus = nil
	for _, c := range b.Spec.Clusters {
		b.Status.AggregatedStatus = append(b.Status.AggregatedStatus,
			workv1alpha2.AggregatedStatusItem{ClusterName: c.Name, Applied: true, Health: health})
	}
	if err := w.client.Status().Update(context.Background(), b); err != nil {
		w.t.Fatal(err)
	}
}

// change the binding, without its status.
func (w *world) change(change func(*workv1alpha2.ResourceBinding)) {
	w.t.Helper()
	b := w.binding()
	change(b)
	if err := w.client.Update(context.Background(), b); err != nil {
		w.t.Fatal(err)
	}
}

// decide as the scheduler does, before the status tells it.
func (w *world) decide(reason string, at time.Time) {
	w.t.Helper()
	w.change(func(b *workv1alpha2.ResourceBinding) {
		karmada.SetDecided(b, karmada.Decided{Generation: b.Generation, Time: metav1.NewTime(at), Reason: reason})
	})
}

func (w *world) want(what string, clusters, tasks, failed int) {
	w.t.Helper()
	b := w.binding()
	remembered := 0
	if b.Spec.BeforeFailover != nil {
		remembered = len(b.Spec.BeforeFailover.Failed)
	}
	if len(b.Spec.Clusters) != clusters || len(b.Spec.GracefulEvictionTasks) != tasks || remembered != failed {
		w.t.Fatalf("%s: clusters %v, tasks %v, before %+v; want %d, %d, %d failed", what, b.Spec.Clusters,
			b.Spec.GracefulEvictionTasks, b.Spec.BeforeFailover, clusters, tasks, failed)
	}
}

// TestThereAndBack follows an object that leaves a member that is away, and returns.
func TestThereAndBack(t *testing.T) {
	w := newWorld(t, nil)
	w.reconcile()
	w.want("at rest", 1, 0, 0)
	w.ready("m1", metav1.ConditionUnknown)
	w.pass(4 * time.Minute)
	w.reconcile()
	w.want("away for a while", 1, 0, 0)
	w.pass(time.Minute)
	w.reconcile()
	w.want("away for too long", 0, 1, 1)
	w.schedule(workv1alpha2.ResourceUnhealthy, "m2")
	w.pass(20 * time.Minute)
	w.reconcile()
	w.want("the replacement is not healthy", 1, 1, 1)
	w.schedule(workv1alpha2.ResourceHealthy, "m2")
	w.reconcile()
	w.want("the replacement is healthy", 1, 0, 1)
	w.schedule(workv1alpha2.ResourceHealthy, "m2")

	w.ready("m1", metav1.ConditionTrue)
	w.reconcile()
	w.pass(4 * time.Minute)
	w.reconcile()
	w.want("the window is not over", 1, 0, 1)
	w.ready("m1", metav1.ConditionFalse)
	w.reconcile()
	w.pass(2 * time.Minute)
	w.ready("m1", metav1.ConditionTrue)
	w.reconcile()
	w.pass(4 * time.Minute)
	w.reconcile()
	w.want("a flap starts the window again", 1, 0, 1)
	w.pass(time.Minute)
	w.reconcile()
	b := w.binding()
	if len(b.Spec.Clusters) != 2 || b.Spec.LastFailBack == nil || b.Spec.BeforeFailover != nil {
		t.Fatalf("not returned: %+v", b.Spec)
	}
}

// TestReplacedIsToldByTheDecisionItself has the status tell of another decision than the last one.
func TestReplacedIsToldByTheDecisionItself(t *testing.T) {
	leaving := func() *world {
		w := newWorld(t, nil)
		w.ready("m1", metav1.ConditionUnknown)
		w.reconcile()
		w.pass(5 * time.Minute)
		w.reconcile()
		w.schedule(workv1alpha2.ResourceHealthy, "m2")
		return w
	}
	w := leaving()
	w.decide(workv1alpha2.ReasonUnschedulable, w.now)
	w.reconcile()
	w.want("the last decision found no room", 1, 1, 1)

	w = leaving()
	b := w.binding()
	b.Status.SchedulerObservedGeneration, b.Status.Conditions = 0, nil
	if err := w.client.Status().Update(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	w.decide(workv1alpha2.ReasonSuccess, w.now)
	w.reconcile()
	w.want("the last decision found room", 1, 0, 1)
}

// inTerms has the object in m2 by the second of two affinity terms, as its status has told for long.
func inTerms(b *workv1alpha2.ResourceBinding) {
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 2}}
	term := func(name, cluster string) policyv1alpha1.ClusterAffinityTerm {
		return policyv1alpha1.ClusterAffinityTerm{
			AffinityName: name, ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}},
		}
	}
	b.Spec.Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{term("first", "m1"), term("second", "m2")}
	b.Spec.Failover = &policyv1alpha1.FailoverBehavior{FailBack: &policyv1alpha1.FailBackBehavior{
		Mode: policyv1alpha1.FailBackAutomatic, WindowSeconds: new(int32(600)),
	}}
	b.Status.SchedulerObservedAffinityName = "second"
	b.Status.LastScheduledTime = new(metav1.NewTime(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)))
}

// TestTheTermInUseIsToldByTheDecisionItself has the status tell of another decision than the last one.
func TestTheTermInUseIsToldByTheDecisionItself(t *testing.T) {
	w := newWorld(t, inTerms)
	w.pass(time.Hour)
	w.decide(workv1alpha2.ReasonSuccess, w.now.Add(-time.Minute))
	if result := w.reconcile(); result.RequeueAfter != 9*time.Minute || w.binding().Spec.LastFailBack != nil {
		t.Errorf("decided a minute ago, but again in %s: %+v", result.RequeueAfter, w.binding().Spec.LastFailBack)
	}
	w.change(func(b *workv1alpha2.ResourceBinding) {
		bindings.SetAnnotation(b, workv1alpha2.AppliedAffinityAnnotation, "first")
	})
	w.pass(time.Hour)
	if result := w.reconcile(); result.RequeueAfter != 0 || w.binding().Spec.LastFailBack != nil {
		t.Errorf("in the first term: again in %s, %+v", result.RequeueAfter, w.binding().Spec.LastFailBack)
	}
	w.change(func(b *workv1alpha2.ResourceBinding) {
		bindings.SetAnnotation(b, workv1alpha2.AppliedAffinityAnnotation, "second")
	})
	w.reconcile()
	if back := w.binding().Spec.LastFailBack; back == nil || back.AffinityName != "first" {
		t.Errorf("not returned: %+v", back)
	}
	w.change(func(b *workv1alpha2.ResourceBinding) {
		b.Spec.GracefulEvictionTasks = nil
		bindings.SetAnnotation(b, workv1alpha2.AppliedAffinityAnnotation, "first")
	})
	w.decide(workv1alpha2.ReasonSuccess, w.now)
	w.reconcile()
	if back := w.binding().Spec.LastFailBack; back == nil || back.AffinityName != "" {
		t.Errorf("the decision of the return is not recognized: %+v", back)
	}
}

// A large object returns in steps. It is told how many replicas run meanwhile, and is one return to the limits.
func TestAReturnInStepsIsToldAndCountedOnce(t *testing.T) {
	w := newWorld(t, func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Replicas = 400
		b.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated,
		}
		b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 400}}
		b.Spec.BeforeFailover = &workv1alpha2.BeforeFailover{
			Clusters:      []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 190}, {Name: "m2", Replicas: 210}},
			Failed:        []workv1alpha2.FailedCluster{{Name: "m1"}},
			PlacementHash: karmada.PlacementHash(b.Spec.Placement),
		}
	})
	w.room("m1", 1000)
	w.objects.options.Limits = failover.Limits{PerHour: 1, PerClusterPerHour: 1}
	w.observe(workv1alpha2.ResourceHealthy)
	w.reconcile()
	w.pass(w.objects.options.FailBackWindow)
	first := w.now
	w.reconcile()
	w.replicas("first step", map[string]int32{"m1": 100, "m2": 300})
	w.told("Normal FailBack returning to m1, healthy again; 100 more replicas than the 400 that are wanted run until " +
		"the copies there are healthy; then more of them return")

	w.observe(workv1alpha2.ResourceUnhealthy)
	w.pass(time.Minute)
	w.reconcile()
	w.replicas("what returned is not healthy yet", map[string]int32{"m1": 100, "m2": 300})
	w.told()
	w.observe(workv1alpha2.ResourceHealthy)
	w.reconcile()
	w.replicas("second step", map[string]int32{"m1": 190, "m2": 210})
	w.told("Normal EvictionFinished the copy in cluster m2 goes (Returned)",
		"Normal FailBack returning to m1, healthy again; 90 more replicas than the 400 that are wanted run until the "+
			"copies there are healthy")
	if wait := w.objects.returns.Wait([]string{"m1"}, w.objects.options.Limits, first.Add(time.Hour)); wait != 0 {
		t.Errorf("an hour after the first step another object has to wait %s", wait)
	}
}

// room is how many pods a cluster may have.
func (w *world) room(name string, pods int64) {
	w.t.Helper()
	cluster := &clusterv1alpha1.Cluster{}
	if err := w.client.Get(context.Background(), types.NamespacedName{Name: name}, cluster); err != nil {
		w.t.Fatal(err)
	}
	cluster.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{
		Allocatable: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)},
	}
	if err := w.client.Status().Update(context.Background(), cluster); err != nil {
		w.t.Fatal(err)
	}
}

// replicas compares the decision.
func (w *world) replicas(what string, want map[string]int32) {
	w.t.Helper()
	got := map[string]int32{}
	for _, c := range w.binding().Spec.Clusters {
		got[c.Name] = c.Replicas
	}
	if !maps.Equal(got, want) {
		w.t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// told compares the events since the last call.
func (w *world) told(want ...string) {
	w.t.Helper()
	var got []string
	for recorder := w.objects.events.(*events.FakeRecorder); len(recorder.Events) > 0; {
		got = append(got, <-recorder.Events)
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("told %q, want %q", got, want)
	}
}

func TestEvictionsKeepTheirPace(t *testing.T) {
	p := newPace(0.5)
	now := time.Unix(0, 0)
	key := func(name string) types.NamespacedName { return types.NamespacedName{Name: name} }
	if p.wait(key("a"), now) != 0 || p.wait(key("b"), now) != 2*time.Second || p.wait(key("c"), now) != 4*time.Second {
		t.Error("one every two seconds")
	}
	if got := p.wait(key("b"), now.Add(time.Second)); got != time.Second {
		t.Errorf("b keeps its place, but waits %s", got)
	}
	p.leave(key("c"), now)
	if got := p.wait(key("d"), now); got != 4*time.Second {
		t.Errorf("d takes the place of c, but waits %s", got)
	}
	slow := newPace(0)
	if slow.wait(key("a"), now) != 0 || slow.wait(key("b"), now) != 30*time.Minute {
		t.Error("rate 0 is one in 30 minutes")
	}
}
