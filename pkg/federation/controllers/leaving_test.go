package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
)

// handedOver gives away who wants to hear of events.
type handedOver struct {
	cache.Cache
	cache.Informer
	handler chan toolscache.ResourceEventHandler
}

func (h *handedOver) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return h, nil
}

func (h *handedOver) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler,
	_ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	h.handler <- handler
	return h, nil
}

func (h *handedOver) WaitForCacheSync(context.Context) bool { return true }

func (h *handedOver) HasSynced() bool { return true }

func TestLeavingIsHeardOfAClusterThatIsGone(t *testing.T) {
	here := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	leaving, other := here.DeepCopy(), here.DeepCopy()
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	other.Name, other.DeletionTimestamp = "other", leaving.DeletionTimestamp
	for name, tc := range map[string]struct {
		event func(toolscache.ResourceEventHandler)
		heard int
	}{
		"it is there":             {func(h toolscache.ResourceEventHandler) { h.OnAdd(here, true) }, 0},
		"it changes":              {func(h toolscache.ResourceEventHandler) { h.OnUpdate(here, here) }, 0},
		"another one leaves":      {func(h toolscache.ResourceEventHandler) { h.OnUpdate(other, other) }, 0},
		"vanished, for no reason": {func(h toolscache.ResourceEventHandler) { h.OnDelete(here) }, 0},
		"it was leaving already":  {func(h toolscache.ResourceEventHandler) { h.OnAdd(leaving, true) }, 1},
		"it is to leave":          {func(h toolscache.ResourceEventHandler) { h.OnUpdate(here, leaving) }, 1},
		"it has left":             {func(h toolscache.ResourceEventHandler) { h.OnDelete(leaving) }, 1},
		"it left unseen": {func(h toolscache.ResourceEventHandler) {
			h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "one", Obj: leaving})
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			informers := &handedOver{handler: make(chan toolscache.ResourceEventHandler)}
			queue := workqueue.NewTypedRateLimitingQueue(rateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			if err := leaves(informers, "one").Start(t.Context(), queue); err != nil {
				t.Fatal(err)
			}
			tc.event(<-informers.handler)
			if got := queue.Len(); got != tc.heard {
				t.Errorf("woken %d times, want %d", got, tc.heard)
			}
		})
	}
}

func TestLeavingIsNotedUntilItWorks(t *testing.T) {
	var calls int
	fleet := fleetWith(t, leavingMember("one"))
	r := &leavingNotes{client: fleet, agent: AgentOptions{Name: "one", Leaving: func(context.Context) error {
		if calls++; calls == 1 {
			return errors.New("not now")
		}
		return nil
	}}}
	if _, err := r.Reconcile(t.Context(), reconcile.Request{}); err == nil {
		t.Error("a failure is not tried again")
	}
	if heard(t, fleet, "one") != "" {
		t.Error("the fleet is told before it is stored")
	}
	if result, err := r.Reconcile(t.Context(), reconcile.Request{}); err != nil || !result.IsZero() || calls != 2 {
		t.Errorf("%v, %v after %d calls", result, err, calls)
	}
	if got := heard(t, fleet, "one"); got != metav1.ConditionTrue {
		t.Errorf("the fleet is told %q", got)
	}
	// The event is that of a Cluster that is gone.
	r.agent.Name = "gone"
	if _, err := r.Reconcile(t.Context(), reconcile.Request{}); err != nil || calls != 3 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// leavingMember has an agent.
func leavingMember(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Finalizers: []string{clusterv1alpha1.Finalizer}, DeletionTimestamp: new(metav1.Now()),
		},
		Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull},
	}
}

func fleetWith(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(fleetscheme.Scheme()).WithObjects(objects...).
		WithStatusSubresource(&clusterv1alpha1.Cluster{}).Build()
}

// heard is what is said about whether the agent of a member knows that it leaves; "" is nothing.
func heard(t *testing.T, fleet client.Client, name string) metav1.ConditionStatus {
	t.Helper()
	cluster := &clusterv1alpha1.Cluster{}
	if err := fleet.Get(t.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
		t.Fatal(err)
	}
	if c := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionAgentLeaving); c != nil {
		return c.Status
	}
	return ""
}

// An agent keeps its rights until it has heard that its member leaves; one that never says so cannot hold the member.
func TestAgentsAreAwaited(t *testing.T) {
	now := time.Now()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.CredentialsNamespace, Name: "one"},
		Spec:       coordinationv1.LeaseSpec{RenewTime: new(metav1.NewMicroTime(now))},
	}
	member := leavingMember("one")
	meta.SetStatusCondition(&member.Status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ConditionAgentReported, Status: metav1.ConditionTrue, Reason: "ClusterReady",
	})
	pushed := member.DeepCopy()
	pushed.Spec.SyncMode = clusterv1alpha1.Push
	for name, tc := range map[string]struct {
		member  *clusterv1alpha1.Cluster
		accepts bool
		says    metav1.ConditionStatus
		after   time.Duration
		stays   bool
	}{
		"it has not heard yet":    {member, true, "", 0, true},
		"it is slow":              {member, true, "", agentHears, true},
		"it never says":           {member, true, "", agentHears + time.Second, false},
		"it says that it has not": {member, true, metav1.ConditionFalse, agentHears + time.Second, false},
		"it has heard":            {member, true, metav1.ConditionTrue, 0, false},
		"no agent was accepted":   {member, false, "", 0, false},
		"the fleet talks to it":   {pushed, true, "", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{tc.member.DeepCopy()}
			if tc.accepts {
				objects = append(objects, lease.DeepCopy())
			}
			fleet := fleetWith(t, objects...)
			at := now
			c := &clusters{client: fleet, now: func() time.Time { return at }, awaited: map[string]time.Time{}}
			cluster := &clusterv1alpha1.Cluster{}
			if err := fleet.Get(t.Context(), client.ObjectKey{Name: "one"}, cluster); err != nil {
				t.Fatal(err)
			}
			setReady(&cluster.Status, metav1.ConditionTrue, "ClusterReady", "")
			if tc.says != "" {
				meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
					Type: clusterv1alpha1.ConditionAgentLeaving, Status: tc.says, Reason: "Test",
				})
			}
			// How long it is waited for is counted from the first look.
			for _, after := range []time.Duration{0, tc.after} {
				at = now.Add(after)
				awaited, err := c.awaitsAgent(t.Context(), cluster)
				if err != nil {
					t.Fatal(err)
				}
				if after == tc.after && awaited != tc.stays {
					t.Errorf("after %s: awaited is %t", after, awaited)
				}
				if awaited && heard(t, fleet, "one") != metav1.ConditionFalse {
					t.Error("who looks at the Cluster is not told what it waits for")
				}
			}
		})
	}
	t.Run("it is not heard of", func(t *testing.T) {
		c := &clusters{client: fleetWith(t, lease.DeepCopy()), now: func() time.Time {
			return now.Add(giveUpUnreachable + time.Minute)
		}}
		silent := member.DeepCopy()
		setReady(&silent.Status, metav1.ConditionUnknown, reasonSilent, "")
		if awaited, err := c.awaitsAgent(t.Context(), silent); awaited || err != nil {
			t.Errorf("got %t, %v", awaited, err)
		}
	})
}
