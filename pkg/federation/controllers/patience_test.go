package controllers

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
	"github.com/trellis-garden/trellis/pkg/federation/priorityqueue"
	"github.com/trellis-garden/trellis/pkg/federation/reservations"
	"github.com/trellis-garden/trellis/pkg/federation/wake"
)

// patienceWorld is a fleet of m1, which has just come, and m2, and a ConfigMap that wants to be in m1, or else in m2.
type patienceWorld struct {
	t *testing.T
	s *scheduling
	// began is when all of this began, and now how much later it is.
	began time.Time
	now   time.Duration
}

func newPatienceWorld(t *testing.T) *patienceWorld {
	t.Helper()
	scheme := fleetscheme.Scheme()
	w := &patienceWorld{t: t, began: time.Now().Truncate(time.Second)}
	newcomer := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1", CreationTimestamp: metav1.NewTime(w.began)},
	}
	known := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m2"}}
	known.Status = answered(metav1.ConditionTrue, "ClusterReady")
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "shop", Generation: 1}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "b"}
	b.Spec.Placement = &policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{
		{AffinityName: "first", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m1"}}},
		{AffinityName: "second", ClusterAffinity: policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}},
	}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(newcomer, known, b).WithStatusSubresource(newcomer).
		Build()
	w.s = &scheduling{
		client: c, now: func() time.Time { return w.began.Add(w.now) }, firstAnswer: 30 * time.Second,
		clusters: &clusterView{reader: c, surveys: newSurveys(), firstAnswer: 30 * time.Second},
		index:    wake.NewIndex(), reservations: reservations.New(time.Now, time.Minute),
		priorities: priorityqueue.New(),
	}
	return w
}

func answered(status metav1.ConditionStatus, reason string) clusterv1alpha1.ClusterStatus {
	result := clusterv1alpha1.ClusterStatus{
		Conditions: []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: status, Reason: reason}},
	}
	if status == metav1.ConditionTrue {
		result.APIEnablements = []clusterv1alpha1.APIEnablement{
			{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Kind: "ConfigMap"}}},
		}
	}
	return result
}

// decided lets the scheduler look at the binding, and says what came of it.
func (w *patienceWorld) decided() (cluster string, decided karmada.Decided, again time.Duration) {
	w.t.Helper()
	key := client.ObjectKey{Namespace: "shop", Name: "b"}
	result, err := w.s.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: key})
	if err != nil {
		w.t.Fatal(err)
	}
	b, err := bindings.Get(w.t.Context(), w.s.client, key)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, target := range b.BindingSpec().Clusters {
		cluster += target.Name
	}
	decided, _ = karmada.DecidedOf(b)
	return cluster, decided, result.RequeueAfter
}

// becomes tells what is known of m1.
func (w *patienceWorld) becomes(status clusterv1alpha1.ClusterStatus, taints ...corev1.Taint) {
	w.t.Helper()
	m1 := &clusterv1alpha1.Cluster{}
	if err := w.s.client.Get(w.t.Context(), client.ObjectKey{Name: "m1"}, m1); err != nil {
		w.t.Fatal(err)
	}
	m1.Spec.Taints = taints
	if err := w.s.client.Update(w.t.Context(), m1); err != nil {
		w.t.Fatal(err)
	}
	m1.Status = status
	if err := w.s.client.Status().Update(w.t.Context(), m1); err != nil {
		w.t.Fatal(err)
	}
	w.s.clusters.changes.Add(1)
}

func TestSchedulingWaitsForMembersOfWhichNothingIsKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(*patienceWorld)
		want    string
	}{
		"it is ready": {
			func(w *patienceWorld) { w.becomes(answered(metav1.ConditionTrue, "ClusterReady")) }, "m1",
		},
		"it does not answer": {
			func(w *patienceWorld) { w.becomes(answered(metav1.ConditionUnknown, "ClusterNotReachable")) }, "m2",
		},
		"nobody asks it": {func(w *patienceWorld) { w.now = time.Hour }, "m2"},
	} {
		w := newPatienceWorld(t)
		w.now = time.Second
		cluster, first, again := w.decided()
		if cluster != "" || first.Reason != workv1alpha2.ReasonWaiting ||
			!strings.HasPrefix(first.Message, "nothing is known of m1 yet: waiting until ") ||
			again <= 0 || again > 30*time.Second {
			t.Fatalf("%s: placed on %q, %+v, again in %s", name, cluster, first, again)
		}
		w.now = 5 * time.Second
		if _, second, _ := w.decided(); second != first {
			t.Errorf("%s: it said %+v and then %+v", name, first, second)
		}
		tc.happens(w)
		if cluster, decided, again := w.decided(); cluster != tc.want || again != 0 ||
			decided.Reason != workv1alpha2.ReasonSuccess {
			t.Errorf("%s: placed on %q, %+v, again in %s", name, cluster, decided, again)
		}
	}
}

// A member whose agent is on the way is tainted as not ready, and still waited for.
func TestSchedulingWaitsForAgents(t *testing.T) {
	w := newPatienceWorld(t)
	w.becomes(answered(metav1.ConditionFalse, clusterv1alpha1.ReasonNotAccepted),
		corev1.Taint{Key: clusterv1alpha1.TaintNotReady, Effect: corev1.TaintEffectNoSchedule})
	if cluster, decided, _ := w.decided(); cluster != "" || decided.Reason != workv1alpha2.ReasonWaiting {
		t.Fatalf("placed on %q, %+v", cluster, decided)
	}
	w.now = time.Hour
	if cluster, _, _ := w.decided(); cluster != "m2" {
		t.Errorf("placed on %q after the time of m1", cluster)
	}
}

// What has its place keeps it when a member comes that it would have preferred.
func TestNewMembersDisturbNothingThatIsPlaced(t *testing.T) {
	w := newPatienceWorld(t)
	w.now = time.Hour
	if cluster, _, _ := w.decided(); cluster != "m2" {
		t.Fatalf("placed on %q", cluster)
	}
	m1 := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}}
	if err := w.s.client.Delete(t.Context(), m1); err != nil {
		t.Fatal(err)
	}
	m1 = &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1", CreationTimestamp: metav1.Now()}}
	if err := w.s.client.Create(t.Context(), m1); err != nil {
		t.Fatal(err)
	}
	w.s.clusters.changes.Add(1)
	cluster, decided, again := w.decided()
	if cluster != "m2" || decided.Reason != workv1alpha2.ReasonSuccess || again != 0 {
		t.Errorf("placed on %q, %+v, again in %s", cluster, decided, again)
	}
}

// What has waited and finds room is not placed before the more urgent has been tried, which was tried before.
func TestWhatHasWaitedIsPlacedBehindTheMoreUrgent(t *testing.T) {
	w := newPatienceWorld(t)
	w.now = time.Hour
	own, urgent := client.ObjectKey{Namespace: "shop", Name: "b"}, client.ObjectKey{Namespace: "shop", Name: "urgent"}
	w.s.priorities.Set(urgent, 10)
	w.s.priorities.Wait(urgent, w.s.priorities.Try())
	w.s.priorities.Wait(own, w.s.priorities.Try())
	if cluster, _, _ := w.decided(); cluster != "" {
		t.Fatalf("placed on %q before the more urgent was tried", cluster)
	}
	w.s.priorities.Wait(urgent, w.s.priorities.Try())
	if cluster, _, _ := w.decided(); cluster != "m2" {
		t.Errorf("placed on %q after the more urgent was tried", cluster)
	}
}
