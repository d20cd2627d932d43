package federation

import (
	"fmt"
	"slices"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

const queuePolicy = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: %s}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {rank: %[1]s}}}]
  schedulePriority: {priorityClassSource: KubePriorityClass, priorityClassName: %[1]s}
  placement:
    clusterAffinity: {clusterNames: [single]}
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Aggregated}
`

// Many wait for a cluster that has room for one. Each time the room comes free, the one with the highest priority gets
// it.
func TestTheMostUrgentGetsTheRoom(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	server := newSmallMember(1, 1)
	t.Cleanup(server.Close)
	w.joinSimulated(t, "single", server.Server)
	namespace := w.newNamespace(t)
	for rank, value := range map[string]int32{"low": -5, "usual": 10, "urgent": 1000} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: rank}, Value: value}
		if err := w.fleet.Create(ctx, class); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { remove(t, w.fleet, class) })
		apply(t, w.fleet, namespace, parse(t, fmt.Sprintf(queuePolicy, rank))...)
	}
	stand := func(name, rank string) {
		d := oneCore(namespace, name)
		d.Labels = map[string]string{"rank": rank}
		if err := w.fleet.Create(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	stand("first-come", "low")
	w.hasRoom(t, namespace, 0, "first-come")
	for i := range 20 {
		stand(fmt.Sprintf("low-%d", i), "low")
		if i == 10 {
			stand("urgent", "urgent")
			stand("usual", "usual")
		}
	}
	w.hasRoom(t, namespace, 22, "first-come")
	for i, next := range []string{"urgent", "usual"} {
		before := []string{"first-come", "urgent"}[i]
		remove(t, w.fleet, oneCore(namespace, before))
		w.hasRoom(t, namespace, 21-i, next)
	}
}

// hasRoom waits until this one is placed and so many others say that they wait. Nothing else may be placed meanwhile,
// but for the one that is leaving.
func (w *world) hasRoom(t *testing.T, namespace string, waiting int, placed string) {
	t.Helper()
	eventuallyWithin(t, fourMinutes, fmt.Sprintf("%s is placed, %d wait", placed, waiting), func() error {
		var list workv1alpha2.ResourceBindingList
		if err := w.fleet.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		var there []string
		wait, why := 0, ""
		for _, b := range list.Items {
			scheduled := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.ConditionScheduled)
			switch {
			case b.DeletionTimestamp != nil:
			case len(b.Spec.Clusters) > 0:
				there = append(there, b.Spec.Resource.Name)
			case scheduled != nil && scheduled.Reason == workv1alpha2.ReasonUnschedulable:
				wait, why = wait+1, scheduled.Message
			}
		}
		if !slices.Equal(there, []string{placed}) || wait != waiting {
			return fmt.Errorf("placed: %v, waiting: %d %s", there, wait, why)
		}
		return nil
	})
}
