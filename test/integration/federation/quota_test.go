package federation

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

func TestFederatedResourceQuota(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	const quota = `{apiVersion: policy.karmada.io/v1alpha1, kind: FederatedResourceQuota, metadata: {name: limits}, spec: {
		overall: {pods: "%[1]d", cpu: "10"}, staticAssignments: [{clusterName: member1, hard: {pods: "%[1]d"}}]}}`
	const policy = `{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: divided}, spec: {
		resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}], placement: {replicaScheduling: {replicaSchedulingType: Divided}}}}`
	apply(t, w.fleet, namespace, parse(t, fmt.Sprintf(quota, 1))...)
	apply(t, w.fleet, namespace, append(parse(t, policy), input(t, "000-karmada-nginx-3docs")[0])...)
	w.condition(t, namespace, workv1alpha2.ConditionScheduled, metav1.ConditionFalse,
		"pods: needs 2, others use 0 of 1")
	w.replicasIn(t, namespace, -1, -1)
	apply(t, w.fleet, namespace, parse(t, fmt.Sprintf(quota, 3))...)
	w.replicasIn(t, namespace, 1, 1)

	t.Run("what is placed stays when more would be too much", func(t *testing.T) {
		object, err := deployment(w.fleet, namespace)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.fleet.Patch(ctx, object,
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`))); err != nil {
			t.Fatal(err)
		}
		w.condition(t, namespace, workv1alpha2.ConditionScheduled, metav1.ConditionFalse, "pods: needs 4")
		w.replicasIn(t, namespace, 1, 1)
	})
	t.Run("members have their share, and the status tells what is used", func(t *testing.T) {
		eventually(t, "a ResourceQuota in member1 alone", func() error {
			object := &corev1.ResourceQuota{}
			if err := w.member["member1"].Get(ctx, types.NamespacedName{Namespace: namespace, Name: "limits"},
				object); err != nil {
				return err
			}
			if object.Spec.Hard.Pods().Value() != 3 {
				return fmt.Errorf("hard %v", object.Spec.Hard)
			}
			return wantGone(w.member["member2"].Get(ctx, types.NamespacedName{Namespace: namespace, Name: "limits"},
				object))
		})
		eventually(t, "2 pods of 3 are used", func() error {
			federated := &policyv1alpha1.FederatedResourceQuota{}
			if err := w.fleet.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "limits"},
				federated); err != nil {
				return err
			}
			if federated.Status.OverallUsed.Pods().Value() != 2 || federated.Status.Overall.Pods().Value() != 3 {
				return fmt.Errorf("status %+v", federated.Status)
			}
			return nil
		})
	})
}
