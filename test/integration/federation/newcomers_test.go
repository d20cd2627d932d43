package federation

import (
	"fmt"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/controllers"
)

// preferring has the Deployment in one member, or else in another.
func preferring(t *testing.T, first, second string) *unstructured.Unstructured {
	t.Helper()
	return parse(t, fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: nginx}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  placement:
    clusterAffinities:
    - {affinityName: first, clusterNames: [%s]}
    - {affinityName: second, clusterNames: [%s]}
`, first, second))[0]
}

const divided1to1 = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: nginx}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  placement:
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList:
        - {targetCluster: {clusterNames: [member1]}, weight: 1}
        - {targetCluster: {clusterNames: [member2]}, weight: 1}
`

// registerAnew has a member in the fleet as if it had just come. No controllers run.
func (w *world) registerAnew(t *testing.T, name string) {
	t.Helper()
	cluster, err := w.getCluster(name)
	if err != nil {
		t.Fatal(err)
	}
	again := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: cluster.Labels}, Spec: cluster.Spec,
	}
	again.Spec.ID, again.Spec.Taints = "", nil
	w.strikeOff(t, name)
	if err := w.fleet.Create(ctx, again); err != nil {
		t.Fatal(err)
	}
}

// strikeOff removes a Cluster that no controller looks after.
func (w *world) strikeOff(t *testing.T, name string) {
	t.Helper()
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	remove(t, w.fleet, cluster)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := w.fleet.Patch(ctx, cluster, patch); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	eventually(t, name+" is gone", func() error { _, err := w.getCluster(name); return wantGone(err) })
}

// Policies that are applied together with the members that they are for find them: nobody knows of member1 how it is
// when the objects are looked at, and all is known of member2.
func TestPlacementsWaitForMembersOfWhichNothingIsKnown(t *testing.T) {
	w := newWorld(t)
	kill := w.startFederation(t)
	kill()
	credentials := &corev1.Secret{}
	key := client.ObjectKey{Namespace: clusterv1alpha1.CredentialsNamespace, Name: "member1"}
	if err := w.fleet.Get(ctx, key, credentials); err != nil {
		t.Fatal(err)
	}
	remove(t, w.fleet, credentials)
	w.registerAnew(t, "member1")
	ordered, even := w.newNamespace(t), w.newNamespace(t)
	apply(t, w.fleet, ordered, preferring(t, "member1", "member2"), nginx(t))
	apply(t, w.fleet, even, parse(t, divided1to1)[0], scaled(t, 6))
	w.startFederationWith(t, func(*rest.Config) {},
		func(options *controllers.Options) { options.Clusters.FirstAnswer = time.Hour })
	for _, namespace := range []string{ordered, even} {
		w.condition(t, namespace, workv1alpha2.ConditionScheduled, metav1.ConditionFalse,
			"nothing is known of member1 yet: waiting until ")
	}
	w.replicasIn(t, ordered, -1, -1)
	w.replicasIn(t, even, -1, -1)

	credentials = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: credentials.Data,
	}
	if err := w.fleet.Create(ctx, credentials); err != nil {
		t.Fatal(err)
	}
	w.replicasIn(t, ordered, 2, -1)
	w.replicasIn(t, even, 3, 3)
	w.condition(t, ordered, workv1alpha2.ConditionScheduled, metav1.ConditionTrue, "placed on member1")
}

// Members that are never heard of, whether the fleet talks to them or an agent does, hold nothing for long.
func TestPlacementsDoNotWaitForEver(t *testing.T) {
	w := newWorld(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	specs := map[string]clusterv1alpha1.ClusterSpec{
		"silent": {
			SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://" + silent.Addr().String(),
			InsecureSkipTLSVerification: true,
			SecretRef: &clusterv1alpha1.LocalSecretReference{
				Namespace: clusterv1alpha1.CredentialsNamespace, Name: "member1",
			},
		},
		"agentless": {SyncMode: clusterv1alpha1.Pull},
	}
	t.Cleanup(func() {
		for name := range specs {
			w.strikeOff(t, name)
			namespace := &corev1.Namespace{
				ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.ExecutionNamespace(name)},
			}
			if w.fleet.Delete(ctx, namespace) == nil {
				w.finalizeNamespace(t, namespace.Name)
			}
		}
	})
	// Less than it takes until a member that says nothing counts as one that does not answer.
	w.startFederation(t, func(options *controllers.Options) { options.Clusters.FirstAnswer = 8 * time.Second })
	namespaces := map[string]string{}
	for name, spec := range specs {
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
		if err := w.fleet.Create(ctx, cluster); err != nil {
			t.Fatal(err)
		}
		namespaces[name] = w.newNamespace(t)
		apply(t, w.fleet, namespaces[name], preferring(t, name, "member2"), nginx(t))
	}
	for name, namespace := range namespaces {
		w.condition(t, namespace, workv1alpha2.ConditionScheduled, metav1.ConditionFalse,
			"nothing is known of "+name+" yet: waiting until ")
	}
	for _, namespace := range namespaces {
		// Why not by the first affinity, only the first decision tells; there may be another one meanwhile.
		w.condition(t, namespace, workv1alpha2.ConditionScheduled, metav1.ConditionTrue, "placed on member2")
		w.replicasIn(t, namespace, -1, 2)
	}
}
