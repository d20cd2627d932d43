package federation

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/apps/v1alpha1"
)

// TestRebalancingReturnsToTheFirstAffinity: a workload that had to go to its second choice goes back when it is asked
// to, not before.
func TestRebalancingReturnsToTheFirstAffinity(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	const policy = `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: choices}, spec: {
		resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}],
		placement: {clusterAffinities: [{affinityName: first, clusterNames: [%s]}, {affinityName: second, clusterNames: [member2]}]}}}`
	apply(t, w.fleet, namespace, input(t, "000-karmada-nginx-3docs")[0])
	apply(t, w.fleet, namespace, parse(t, fmt.Sprintf(policy, "nowhere"))...)
	w.replicasIn(t, namespace, -1, 2)
	apply(t, w.fleet, namespace, parse(t, fmt.Sprintf(policy, "member1"))...)
	eventually(t, "the change was seen", func() error {
		b, err := w.bindingOf(namespace)
		if err != nil || b.Status.SchedulerObservedGeneration != b.Generation ||
			b.Spec.Placement.ClusterAffinities[0].ClusterNames[0] != "member1" {
			return fmt.Errorf("%+v %w", b.Status, err)
		}
		return nil
	})
	w.replicasIn(t, namespace, -1, 2)

	rebalancer := parse(t, fmt.Sprintf(`{apiVersion: apps.karmada.io/v1alpha1, kind: WorkloadRebalancer, metadata: {name: %s}, spec: {ttlSecondsAfterFinished: 1, workloads: [
		{apiVersion: apps/v1, kind: Deployment, namespace: %s, name: nginx}, {apiVersion: apps/v1, kind: Deployment, namespace: %s, name: other}]}}`, namespace, namespace, namespace))[0]
	if err := w.fleet.Create(ctx, rebalancer); err != nil {
		t.Fatal(err)
	}
	w.replicasIn(t, namespace, 2, -1)
	eventually(t, "it is removed after it has finished", func() error {
		return wantGone(w.fleet.Get(ctx, types.NamespacedName{Name: namespace}, &appsv1alpha1.WorkloadRebalancer{}))
	})
}
