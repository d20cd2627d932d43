package drain

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// shoot is a member that answers.
func shoot(changes ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{}
	cluster.Name, cluster.Labels = "m1", map[string]string{clusterv1alpha1.ShootLabel: "m1"}
	cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	for _, change := range changes {
		change(cluster)
	}
	return cluster
}

func tainted(since time.Duration) func(*clusterv1alpha1.Cluster) {
	added := metav1.NewTime(now.Add(-since))
	return func(c *clusterv1alpha1.Cluster) {
		taint := corev1.Taint{
			Key: clusterv1alpha1.TaintHibernated, Effect: corev1.TaintEffectNoExecute, TimeAdded: &added,
		}
		c.Spec.Taints = []corev1.Taint{taint}
	}
}

func asleep(c *clusterv1alpha1.Cluster) {
	c.Annotations = map[string]string{clusterv1alpha1.HibernatedAnnotation: "true"}
}

func leaving(c *clusterv1alpha1.Cluster) {
	c.Finalizers, c.DeletionTimestamp = []string{"a/b"}, &metav1.Time{Time: now}
}

// binding is placed in m1.
func binding(changes ...func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{}
	b.Namespace, b.Name, b.Generation = "default", "web-deployment", 4
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1"}}
	for _, change := range changes {
		change(b)
	}
	return b
}

func tolerating(seconds *int64) func(*workv1alpha2.ResourceBinding) {
	return func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Placement = &policyv1alpha1.Placement{ClusterTolerations: []corev1.Toleration{
			{Key: clusterv1alpha1.TaintHibernated, Operator: corev1.TolerationOpExists, TolerationSeconds: seconds},
		}}
	}
}

func suspended(b *workv1alpha2.ResourceBinding) {
	b.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
}

// evicted has the decision name no cluster; that is what the scheduler has been saying for some time.
func evicted(reason string, since time.Duration, observed int64) func(*workv1alpha2.ResourceBinding) {
	return func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Clusters, b.Spec.Placement = nil, &policyv1alpha1.Placement{}
		b.Status.SchedulerObservedGeneration = observed
		b.Status.Conditions = []metav1.Condition{{
			Type: workv1alpha2.ConditionScheduled, Reason: reason, LastTransitionTime: metav1.NewTime(now.Add(-since)),
		}}
	}
}

// decidedSince has the scheduler say in the binding itself what the status doesn't tell yet.
func decidedSince(reason string, since time.Duration) func(*workv1alpha2.ResourceBinding) {
	return func(b *workv1alpha2.ResourceBinding) {
		karmada.SetDecided(b, karmada.Decided{
			Generation: b.Generation, Time: metav1.NewTime(now.Add(-since)), Reason: reason,
		})
	}
}

func work(changes ...func(*workv1alpha1.Work)) *workv1alpha1.Work {
	w := &workv1alpha1.Work{}
	w.Namespace, w.Name = clusterv1alpha1.ExecutionNamespace("m1"), "web"
	w.Annotations = map[string]string{
		workv1alpha2.NamespaceAnnotation: "default", workv1alpha2.NameAnnotation: "web-deployment",
	}
	for _, change := range changes {
		change(w)
	}
	return w
}

func going(w *workv1alpha1.Work) {
	w.Finalizers, w.DeletionTimestamp = []string{"a/b"}, &metav1.Time{Time: now}
}

func TestLeaves(t *testing.T) {
	const success = workv1alpha2.ReasonSuccess
	briefly, forLong := tolerating(new(int64(30))), tolerating(new(int64(600)))
	for name, tc := range map[string]struct {
		cluster *clusterv1alpha1.Cluster
		work    *workv1alpha1.Work
		binding *workv1alpha2.ResourceBinding
		want    bool
	}{
		"placed, and the shoot is awake":      {shoot(), work(), binding(), true},
		"placed, and the shoot falls asleep":  {shoot(tainted(time.Minute)), work(), binding(), true},
		"tolerates the sleep":                 {shoot(), work(), binding(tolerating(nil)), false},
		"tolerates it for some time":          {shoot(), work(), binding(briefly), true},
		"tolerates it for longer than we may": {shoot(), work(), binding(forLong), false},
		"has tolerated it for long enough":    {shoot(tainted(595 * time.Second)), work(), binding(forLong), true},
		"the decision stays as it is":         {shoot(), work(), binding(suspended), false},
		"a replacement is being sought":       {shoot(), work(), binding(evicted("NoClusterFit", time.Hour, 3)), true},
		"a replacement is being made":         {shoot(), work(), binding(evicted(success, time.Hour, 4)), true},
		"nothing takes it, so far": {
			shoot(), work(), binding(evicted("NoClusterFit", time.Second, 4)), true,
		},
		"nothing takes it": {
			shoot(), work(), binding(evicted("NoClusterFit", time.Minute, 4)), false,
		},
		"nothing takes it, and the status is of another time": {
			shoot(), work(), binding(evicted(success, time.Hour, 3), decidedSince("NoClusterFit", time.Minute)), false,
		},
		"a replacement is being made, and the status is of another time": {
			shoot(), work(), binding(evicted("NoClusterFit", time.Hour, 4), decidedSince(success, time.Second)), true,
		},
		"the old copy is being removed": {shoot(), work(going), binding(tolerating(nil)), true},
	} {
		if got := leaves(tc.cluster, tc.work, tc.binding, now); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if !leaves(shoot(), work(), nil, now) {
		t.Error("what no binding wants any more leaves")
	}
}

// world is a fleet with one member.
type world struct {
	*drain
	t      *testing.T
	member client.Client
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, clusterv1alpha1.AddToScheme, workv1alpha1.AddToScheme, workv1alpha2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "1A2B3C4D-0000"}}
	objects = append(objects, system)
	w := &world{t: t, member: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()}
	w.drain = &drain{
		client:     fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(),
		connection: func(string) (client.Client, bool) { return w.member, true },
		now:        func() time.Time { return now }, leases: map[string]lease{},
	}
	return w
}

// look reconciles the member, and tells when it is looked at again.
func (w *world) look() time.Duration {
	w.t.Helper()
	result, err := w.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "m1"}})
	if err != nil {
		w.t.Fatal(err)
	}
	return result.RequeueAfter
}

// lease is what the member has; nil if there is none.
func (w *world) lease() *coordinationv1.Lease {
	w.t.Helper()
	found := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "trellis-fleet-1a2b3c4d"}
	err := w.member.Get(w.t.Context(), key, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func (w *world) change(object client.Object, change func()) {
	w.t.Helper()
	if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		w.t.Fatal(err)
	}
	change()
	if err := w.client.Update(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

// The Lease is there from when the fleet has something in the shoot until the last of it is gone.
func TestLeaseFollowsWorks(t *testing.T) {
	w := newWorld(t, shoot(), binding())
	if w.look() != renewal || w.lease() != nil {
		t.Fatal("an empty shoot has a Lease")
	}
	if err := w.client.Create(t.Context(), work()); err != nil {
		t.Fatal(err)
	}
	if w.look() != renewal {
		t.Error("an awake shoot is looked at by the clock")
	}
	got := w.lease()
	if got == nil || got.Labels[clusterv1alpha1.DrainLeaseLabel] != "true" || *got.Spec.LeaseDurationSeconds != 180 {
		t.Fatalf("got %+v", got)
	}
	if *got.Spec.HolderIdentity != "1A2B3C4D-0000" || !got.Spec.RenewTime.Time.Equal(now) {
		t.Errorf("got %+v", got.Spec)
	}
	cluster := shoot()
	w.change(cluster, func() { tainted(0)(cluster) })
	if w.look() != look {
		t.Error("a shoot that falls asleep is looked at often")
	}
	if err := w.client.Delete(t.Context(), work()); err != nil {
		t.Fatal(err)
	}
	if w.look() != renewal || w.lease() != nil {
		t.Error("a drained shoot still has a Lease")
	}
}

func TestLeaseIsRenewed(t *testing.T) {
	w := newWorld(t, shoot(), binding(), work())
	current := now
	w.now = func() time.Time { return current }
	w.look()
	current = now.Add(renewal - time.Second)
	w.look()
	if got := w.lease(); !got.Spec.RenewTime.Time.Equal(now) {
		t.Errorf("renewed too early: %v", got.Spec.RenewTime)
	}
	current = now.Add(renewal)
	w.look()
	if got := w.lease(); !got.Spec.RenewTime.Time.Equal(current) {
		t.Errorf("not renewed: %v", got.Spec.RenewTime)
	}
}

// A process that was just started removes a Lease that an earlier one has left.
func TestOldLeaseIsRemoved(t *testing.T) {
	w := newWorld(t, shoot())
	old := &coordinationv1.Lease{}
	old.Namespace, old.Name = metav1.NamespaceSystem, "trellis-fleet-1a2b3c4d"
	if err := w.member.Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if w.look(); w.lease() != nil {
		t.Error("the Lease is left")
	}
}

func TestWhoIsNotTold(t *testing.T) {
	unmade := func(w *workv1alpha1.Work) { w.Annotations = nil }
	for name, objects := range map[string][]client.Object{
		"no shoot": {shoot(func(c *clusterv1alpha1.Cluster) { c.Labels = nil }), work()},
		"asleep":   {shoot(asleep), work()},
		"not ready": {
			shoot(func(c *clusterv1alpha1.Cluster) { c.Status.Conditions = nil }), work(),
		},
		"leaves the fleet":               {shoot(leaving), work()},
		"has only what people put there": {shoot(), work(unmade)},
		"is not there":                   {work()},
	} {
		w := newWorld(t, append(objects, binding())...)
		if w.look(); w.lease() != nil {
			t.Errorf("%s: has a Lease", name)
		}
	}
	w := newWorld(t, shoot(), binding(), work())
	w.connection = func(string) (client.Client, bool) { return nil, false }
	if again := w.look(); again != retryConnection {
		t.Errorf("a member without a connection is looked at again after %s", again)
	}
}
