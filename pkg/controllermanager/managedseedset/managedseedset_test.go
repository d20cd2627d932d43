package managedseedset

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/controllermanager/index/indextest"
)

func newSet(replicas int32) *seedmanagementv1alpha1.ManagedSeedSet {
	return &seedmanagementv1alpha1.ManagedSeedSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "eu", UID: "set"},
		Spec: seedmanagementv1alpha1.ManagedSeedSetSpec{
			Replicas: &replicas,
			Template: seedmanagementv1alpha1.ManagedSeedTemplate{
				Spec: seedmanagementv1alpha1.ManagedSeedSpec{Gardenlet: seedmanagementv1alpha1.GardenletConfig{
					Config: &runtime.RawExtension{Raw: []byte(`{"seedConfig":{"ingress":"replica-name.example"}}`)},
				}},
			},
			ShootTemplate: gardencorev1beta1.ShootTemplate{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"set": "eu"}},
				Spec: gardencorev1beta1.ShootSpec{
					DNS: &gardencorev1beta1.DNS{Domain: new("replica-name.example")},
				},
			},
		},
	}
}

func operation(kind gardencorev1beta1.LastOperationType, state gardencorev1beta1.LastOperationState) func(*replica) {
	return func(r *replica) {
		r.shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: kind, State: state}
	}
}

var (
	created    = operation("Create", "Succeeded")
	brokenDown = operation("Reconcile", "Failed")
	leaving    = func(r *replica) { r.shoot.DeletionTimestamp = &metav1.Time{} }
	prepared   = func(r *replica) { r.managedSeed = &seedmanagementv1alpha1.ManagedSeed{} }
	registers  = func(r *replica) {
		prepared(r)
		r.managedSeed.Status.Conditions = []gardencorev1beta1.Condition{
			{Type: seedmanagementv1alpha1.ManagedSeedSeedRegistered, Status: "True"},
		}
	}
	ready = func(r *replica) {
		created(r)
		registers(r)
		r.seed = &gardencorev1beta1.Seed{}
		r.seed.Status.Conditions = []gardencorev1beta1.Condition{
			{Type: gardencorev1beta1.SeedGardenletReady, Status: "True"},
		}
	}
	unhealthy = func(r *replica) {
		ready(r)
		r.shoot.Status.Conditions = []gardencorev1beta1.Condition{
			{Type: gardencorev1beta1.ShootEveryNodeReady, Status: "False"},
		}
	}
	hosting   = func(r *replica) { ready(r); r.hosts = 1 }
	protected = func(r *replica) {
		ready(r)
		r.shoot.Annotations = map[string]string{protectFromDeletion: "true"}
	}
	unseeding = func(r *replica) {
		ready(r)
		r.managedSeed.DeletionTimestamp = &metav1.Time{}
	}
)

// replicasOf makes replicas 0, 1, … that are in the given states.
func replicasOf(states ...func(*replica)) []replica {
	var replicas []replica
	for i, state := range states {
		r := replica{name: replicaName("eu", i), ordinal: i, shoot: &gardencorev1beta1.Shoot{}}
		state(&r)
		replicas = append(replicas, r)
	}
	return replicas
}

func TestDecide(t *testing.T) {
	fresh := func(*replica) {}
	at := func(shoot, managedSeed string) func(*replica) {
		return func(r *replica) {
			ready(r)
			r.shoot.Labels, r.managedSeed.Labels = map[string]string{revisionLabel: shoot},
				map[string]string{revisionLabel: managedSeed}
		}
	}
	partition := func(ordinal int32) func(*seedmanagementv1alpha1.ManagedSeedSet) {
		return func(s *seedmanagementv1alpha1.ManagedSeedSet) {
			s.Spec.UpdateStrategy = &seedmanagementv1alpha1.UpdateStrategy{
				RollingUpdate: &seedmanagementv1alpha1.RollingUpdateStrategy{Partition: &ordinal},
			}
		}
	}
	busy := func(r *replica) {
		at("now", "old")(r)
		r.shoot.Generation = 2
	}
	tests := map[string]struct {
		replicas int32
		present  []replica
		change   func(*seedmanagementv1alpha1.ManagedSeedSet)
		want     decision
	}{
		"the first": {1, nil, nil, decision{createShoot, "eu-0", "ShootReconciling"}},
		"a shoot that is being created": {
			1, replicasOf(fresh), nil, decision{nothing, "eu-0", "ShootReconciling"},
		},
		"a shoot that is there": {
			1, replicasOf(created), nil, decision{createManagedSeed, "eu-0", "ManagedSeedPreparing"},
		},
		"a managed seed that is at work": {
			1, replicasOf(func(r *replica) { created(r); prepared(r) }), nil,
			decision{nothing, "eu-0", "ManagedSeedPreparing"},
		},
		"a seed that has not reported": {
			1, replicasOf(func(r *replica) { created(r); registers(r) }), nil,
			decision{nothing, "eu-0", "SeedNotReady"},
		},
		"a seed whose shoot is ill": {
			1, replicasOf(unhealthy), nil, decision{nothing, "eu-0", "ShootNotHealthy"},
		},
		"all is well": {1, replicasOf(at("now", "now")), nil, decision{}},
		"the next": {
			2, replicasOf(ready), nil, decision{createShoot, "eu-1", "ShootReconciling"},
		},
		"one at a time": {
			3, replicasOf(ready, fresh), nil, decision{nothing, "eu-1", "ShootReconciling"},
		},
		"numbers are not used twice": {
			2, replicasOf(ready), func(s *seedmanagementv1alpha1.ManagedSeedSet) { s.Status.NextReplicaNumber = 5 },
			decision{createShoot, "eu-5", "ShootReconciling"},
		},
		"a failed shoot is tried again": {
			1, replicasOf(brokenDown), nil, decision{retryShoot, "eu-0", "ShootReconcileFailed"},
		},
		"but not for ever": {
			1, replicasOf(brokenDown), withRetries("eu-0", 3), decision{nothing, "eu-0", "ShootReconcileFailed"},
		},
		"each replica has its own retries": {
			1, replicasOf(brokenDown), withRetries("eu-9", 3), decision{retryShoot, "eu-0", "ShootReconcileFailed"},
		},
		"somebody deletes a shoot": {
			1, replicasOf(leaving), nil, decision{nothing, "eu-0", "ShootDeleting"},
		},
		"one too many": {
			1, replicasOf(ready, ready), nil, decision{deleteManagedSeed, "eu-1", "ManagedSeedDeleting"},
		},
		"one that is not ready goes first": {
			1, replicasOf(unhealthy, ready), nil, decision{deleteManagedSeed, "eu-0", "ManagedSeedDeleting"},
		},
		"one that is no seed yet": {
			1, replicasOf(fresh, ready), nil, decision{deleteShoot, "eu-0", "ShootDeleting"},
		},
		"one that is going already": {
			1, replicasOf(ready, unseeding, fresh), nil, decision{nothing, "eu-1", "ManagedSeedDeleting"},
		},
		"its shoot goes, too": {
			1, replicasOf(ready, leaving), nil, decision{nothing, "eu-1", "ShootDeleting"},
		},
		"seeds with shoots stay": {
			1, replicasOf(ready, hosting), nil, decision{deleteManagedSeed, "eu-0", "ManagedSeedDeleting"},
		},
		"protected seeds stay": {0, replicasOf(protected), nil, decision{}},
		"everything goes with the set": {
			1, replicasOf(ready), func(s *seedmanagementv1alpha1.ManagedSeedSet) {
				s.DeletionTimestamp = &metav1.Time{}
			}, decision{
				deleteManagedSeed, "eu-0", "ManagedSeedDeleting",
			},
		},
		"the highest is updated first": {
			2, replicasOf(at("old", "old"), at("old", "old")), nil, decision{updateShoot, "eu-1", "ShootReconciling"},
		},
		"the update of a shoot is waited for": {
			2, replicasOf(at("old", "old"), busy), nil, decision{nothing, "eu-1", "ShootReconciling"},
		},
		"then its managed seed": {
			2, replicasOf(at("old", "old"), at("now", "old")), nil,
			decision{updateManagedSeed, "eu-1", "ManagedSeedPreparing"},
		},
		"then the next": {
			2, replicasOf(at("old", "old"), at("now", "now")), nil, decision{updateShoot, "eu-0", "ShootReconciling"},
		},
		"lower ones than the partition stay": {
			2, replicasOf(at("old", "old"), at("now", "now")), partition(1), decision{},
		},
		"nothing is updated while one is ill": {
			2, replicasOf(unhealthy, at("old", "old")), nil, decision{nothing, "eu-0", "ShootNotHealthy"},
		},
		"one more is created before": {
			2, replicasOf(at("old", "old")), nil, decision{createShoot, "eu-1", "ShootReconciling"},
		},
		"the retry is waited for": {
			1, replicasOf(func(r *replica) { brokenDown(r); r.shoot.Generation = 2 }), nil,
			decision{nothing, "eu-0", "ShootReconciling"},
		},
		"a deletion that failed is told of": {
			0, replicasOf(func(r *replica) { leaving(r); operation("Delete", "Failed")(r) }), nil,
			decision{nothing, "eu-0", "ShootDeleteFailed"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := newSet(test.replicas)
			if test.change != nil {
				test.change(set)
			}
			if got := decide(set, test.present, "now"); got != test.want {
				t.Errorf("decision = %+v, want %+v", got, test.want)
			}
		})
	}
}

func withRetries(name string, retries int32) func(*seedmanagementv1alpha1.ManagedSeedSet) {
	return func(set *seedmanagementv1alpha1.ManagedSeedSet) {
		set.Status.PendingReplica = &seedmanagementv1alpha1.PendingReplica{Name: name, Retries: &retries}
	}
}

func TestOrdinalOf(t *testing.T) {
	for name, want := range map[string]int{
		"eu-0": 0, "eu-12": 12, "eu-01": -1, "eu--1": -1, "eu-x": -1, "us-1": -1, "eu": -1,
	} {
		ordinal, ok := ordinalOf("eu", name)
		if ok != (want >= 0) || ok && ordinal != want {
			t.Errorf("%s: %d, %t; want %d", name, ordinal, ok, want)
		}
	}
}

func TestSetGrowsAndGoes(t *testing.T) {
	ctx := context.Background()
	set := newSet(1)
	c := indextest.NewClientBuilder().WithObjects(set).
		WithStatusSubresource(set, &gardencorev1beta1.Shoot{}, &seedmanagementv1alpha1.ManagedSeed{}).Build()
	r := &Reconciler{Client: c, Replicas: c, SyncPeriod: time.Minute, Now: time.Now}
	key := client.ObjectKey{Namespace: "garden", Name: "eu-0"}
	round := func() {
		t.Helper()
		if _, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(set)}); err != nil {
			t.Fatal(err)
		}
	}
	shoot, managedSeed := &gardencorev1beta1.Shoot{}, &seedmanagementv1alpha1.ManagedSeed{}

	round()
	if err := c.Get(ctx, key, shoot); err != nil {
		t.Fatal(err)
	}
	if *shoot.Spec.DNS.Domain != "eu-0.example" || shoot.Labels["set"] != "eu" {
		t.Errorf("domain %s, labels %v", *shoot.Spec.DNS.Domain, shoot.Labels)
	}
	shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateSucceeded}
	if err := c.Status().Update(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	round()
	if err := c.Get(ctx, key, managedSeed); err != nil {
		t.Fatal(err)
	}
	if managedSeed.Spec.Shoot.Name != "eu-0" ||
		string(managedSeed.Spec.Gardenlet.Config.Raw) != `{"seedConfig":{"ingress":"eu-0.example"}}` {
		t.Errorf("shoot %v, configuration %s", managedSeed.Spec.Shoot, managedSeed.Spec.Gardenlet.Config.Raw)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil || set.Status.Replicas != 1 ||
		set.Status.PendingReplica == nil {
		t.Errorf("status = %+v, %v", set.Status, err)
	}

	if err := c.Delete(ctx, set); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the managed seed, the shoot, the set
		round()
	}
	for _, object := range []client.Object{managedSeed, shoot, set} {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			t.Errorf("%T: %v, want it to be gone", object, err)
		}
	}
}

func TestPendingKeepsItsTime(t *testing.T) {
	early, late := metav1.NewTime(time.Unix(1, 0)), metav1.NewTime(time.Unix(2, 0))
	before := &seedmanagementv1alpha1.PendingReplica{
		Name: "eu-0", Reason: "ShootReconcileFailed", Since: early, Retries: new(int32(1)),
	}
	same := pending(before, decision{retryShoot, "eu-0", "ShootReconcileFailed"}, late)
	if !same.Since.Equal(&early) || ptr.Deref(same.Retries, 0) != 2 {
		t.Errorf("pending = %+v", same)
	}
	other := pending(before, decision{nothing, "eu-0", "ShootReconciling"}, late)
	if !other.Since.Equal(&late) || ptr.Deref(other.Retries, 0) != 1 {
		t.Errorf("pending = %+v", other)
	}
	if done := pending(before, decision{}, late); done != nil {
		t.Errorf("pending = %+v, want none", done)
	}
}

func TestReplicasOfOthersAreLeftAlone(t *testing.T) {
	set := newSet(1)
	foreign := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "eu-0"}}
	c := indextest.NewClientBuilder().WithObjects(set, foreign).Build()
	r := &Reconciler{Client: c, Replicas: c}
	if replicas, err := r.replicas(context.Background(), set); err != nil || len(replicas) > 0 {
		t.Errorf("replicas = %v, %v; want none", replicas, err)
	}
}

func TestUpdateReachesReplicas(t *testing.T) {
	ctx := context.Background()
	set := newSet(1)
	c := indextest.NewClientBuilder().WithObjects(set, &gardencorev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: "eu-0"},
		Status: gardencorev1beta1.SeedStatus{
			Conditions: []gardencorev1beta1.Condition{{Type: gardencorev1beta1.SeedGardenletReady, Status: "True"}},
		},
	}).WithStatusSubresource(set, &gardencorev1beta1.Shoot{}, &seedmanagementv1alpha1.ManagedSeed{}).Build()
	r := &Reconciler{Client: c, Replicas: c, SyncPeriod: time.Minute, Now: time.Now}
	shoot, managedSeed := &gardencorev1beta1.Shoot{}, &seedmanagementv1alpha1.ManagedSeed{}
	shoot.Namespace, shoot.Name, managedSeed.Namespace, managedSeed.Name = "garden", "eu-0", "garden", "eu-0"
	round := func() {
		t.Helper()
		if _, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(set)}); err != nil {
			t.Fatal(err)
		}
		for _, object := range []client.Object{set, shoot, managedSeed} {
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		}
	}
	round()
	shoot.Spec.Region = "set by somebody else"
	if err := c.Update(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateSucceeded}
	if err := c.Status().Update(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	round()
	managedSeed.Status.Conditions = []gardencorev1beta1.Condition{
		{Type: seedmanagementv1alpha1.ManagedSeedSeedRegistered, Status: "True"},
	}
	if err := c.Status().Update(ctx, managedSeed); err != nil {
		t.Fatal(err)
	}
	round()
	first := set.Status.CurrentRevision
	if set.Status.UpdatedReplicas != 1 || first == "" || set.Status.UpdateRevision != first {
		t.Errorf("status is %+v", set.Status)
	}

	set.Spec.ShootTemplate.Spec.DNS = nil
	set.Spec.ShootTemplate.Spec.Kubernetes.Version = "1.36.3"
	set.Spec.Template.Spec.Gardenlet.Config.Raw = []byte(`{"seedConfig":{"ingress":"other.replica-name.example"}}`)
	if err := c.Update(ctx, set); err != nil {
		t.Fatal(err)
	}
	round()
	if set.Status.UpdatedReplicas != 0 || set.Status.CurrentReplicas != 0 || set.Status.CurrentRevision != first ||
		set.Status.UpdateRevision == first {
		t.Errorf("status is %+v", set.Status)
	}
	if shoot.Spec.DNS != nil || shoot.Spec.Kubernetes.Version != "1.36.3" ||
		shoot.Spec.Region != "set by somebody else" {
		t.Errorf("shoot is %+v", shoot.Spec)
	}
	round()
	if got := string(managedSeed.Spec.Gardenlet.Config.Raw); got != `{"seedConfig":{"ingress":"other.eu-0.example"}}` ||
		managedSeed.Spec.Shoot.Name != "eu-0" {
		t.Errorf("configuration is %s", got)
	}
	round()
	if set.Status.UpdatedReplicas != 1 || set.Status.CurrentRevision == first || set.Status.PendingReplica != nil {
		t.Errorf("status is %+v", set.Status)
	}
}

func TestSuperfluousRevisions(t *testing.T) {
	var known history
	for _, hash := range []string{"a", "b", "c", "d", "e"} {
		known = append(known, appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Name: hash, Labels: map[string]string{revisionLabel: hash}},
		})
	}
	follows := []replica{
		{shoot: &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{revisionLabel: "b"}}}},
	}
	for limit, want := range map[int]string{0: "acd", 1: "ac", 2: "a", 3: "", 10: ""} {
		got := ""
		for _, revision := range superfluous(known, follows, limit) {
			got += revision.Name
		}
		if got != want {
			t.Errorf("limit %d: %q, want %q", limit, got, want)
		}
	}
}
