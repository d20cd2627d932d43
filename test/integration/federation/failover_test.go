package federation

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/controllers"
)

// hasty failure handling, so that tests take seconds.
func hasty(options *controllers.Options) {
	options.Failover.ClusterFailoverAfter = time.Second
	options.Failover.EvictionRate = 100
	options.Failover.FailBackWindow = 2 * time.Second
}

const orderedPolicy = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: ordered}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  placement:
    clusterAffinities:
    - {affinityName: first, clusterNames: [member2]}
    - {affinityName: second, clusterNames: [member1]}
    replicaScheduling:
      replicaSchedulingType: Divided
      weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [member1, member2]}, weight: 1}]}
`

func nginx(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	return input(t, "000-karmada-nginx-3docs")[0]
}

// healthyIn writes the status of a Deployment that runs, as the member's controller would.
func (w *world) healthyIn(t *testing.T, namespace, name string) {
	t.Helper()
	eventually(t, "the deployment in "+name+" runs", func() error {
		object, err := deployment(w.member[name], namespace)
		if err != nil {
			return err
		}
		replicas, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
		before := object.DeepCopy()
		object.Object["status"] = map[string]any{
			"observedGeneration": object.GetGeneration(), "replicas": replicas, "updatedReplicas": replicas,
			"readyReplicas": replicas, "availableReplicas": replicas,
		}
		return w.member[name].Status().Patch(ctx, object, client.MergeFrom(before))
	})
}

// unhealthyIn writes the status of a Deployment none of whose pods runs.
func (w *world) unhealthyIn(t *testing.T, namespace, name string) {
	t.Helper()
	eventually(t, "the copy in "+name+" reports that it is unhealthy", func() error {
		object, err := deployment(w.member[name], namespace)
		if err != nil {
			return err
		}
		before := object.DeepCopy()
		object.Object["status"] = map[string]any{
			"observedGeneration": object.GetGeneration(), "replicas": int64(2), "updatedReplicas": int64(2),
			"unavailableReplicas": int64(2),
		}
		return w.member[name].Status().Patch(ctx, object, client.MergeFrom(before))
	})
}

// placed waits until the binding has these target clusters, and so many copies that wait for their replacement.
func (w *world) placed(t *testing.T, namespace string, tasks int, clusters ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("placed in %v with %d tasks", clusters, tasks), func() error {
		b, err := w.bindingOf(namespace)
		if err != nil {
			return err
		}
		var got []string
		for _, c := range b.Spec.Clusters {
			got = append(got, c.Name)
		}
		if fmt.Sprint(got) != fmt.Sprint(clusters) || len(b.Spec.GracefulEvictionTasks) != tasks {
			return fmt.Errorf("clusters %v, tasks %+v, before %+v, scheduled %+v", got, b.Spec.GracefulEvictionTasks,
				b.Spec.BeforeFailover,
				meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.ConditionScheduled))
		}
		return nil
	})
}

func TestMemberFailsAndComesBack(t *testing.T) {
	w := newWorld(t)
	kill := w.startFederation(t, hasty)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, orderedPolicy)[0], nginx(t))
	w.replicasIn(t, namespace, -1, 2)
	w.healthyIn(t, namespace, "member2")
	first, err := deployment(w.member["member2"], namespace)
	if err != nil {
		t.Fatal(err)
	}

	w.cutOff(t, "member2")
	w.placed(t, namespace, 1, "member1")
	w.replicasIn(t, namespace, 2, 2)
	kill()
	w.startFederation(t, hasty)
	work := w.workIn(t, "member2", namespace)
	if work == nil || work.DeletionTimestamp != nil {
		t.Fatalf("the old copy goes before its replacement is healthy: %v", work)
	}
	w.healthyIn(t, namespace, "member1")
	w.placed(t, namespace, 0, "member1")

	w.reconnect("member2")
	w.placed(t, namespace, 1, "member2")
	eventually(t, "a new copy in member2", func() error {
		object, err := deployment(w.member["member2"], namespace)
		if err == nil && object.GetUID() == first.GetUID() {
			return errors.New("it is the old one")
		}
		return err
	})
	w.replicasIn(t, namespace, 2, 2)
	w.healthyIn(t, namespace, "member2")
	w.placed(t, namespace, 0, "member2")
	w.replicasIn(t, namespace, -1, 2)
}

func (w *world) workIn(t *testing.T, cluster, namespace string) *workv1alpha1.Work {
	t.Helper()
	var list workv1alpha1.WorkList
	if err := w.fleet.List(ctx, &list, client.InNamespace(clusterv1alpha1.ExecutionNamespace(cluster))); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Annotations[workv1alpha2.NamespaceAnnotation] == namespace {
			return &list.Items[i]
		}
	}
	return nil
}

// TestNowhereElseToGo: an object that fits nowhere else stays, and goes on when its member is back.
func TestNowhereElseToGo(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t, hasty)
	namespace := w.newNamespace(t)
	policy := parse(t, orderedPolicy)[0]
	if err := unstructured.SetNestedSlice(policy.Object,
		[]any{map[string]any{"affinityName": "first", "clusterNames": []any{"member2"}}}, "spec", "placement",
		"clusterAffinities"); err != nil {
		t.Fatal(err)
	}
	apply(t, w.fleet, namespace, policy, nginx(t))
	w.replicasIn(t, namespace, -1, 2)
	before, err := deployment(w.member["member2"], namespace)
	if err != nil {
		t.Fatal(err)
	}
	w.cutOff(t, "member2")
	w.placed(t, namespace, 1)
	w.reconnect("member2")
	w.placed(t, namespace, 0, "member2")
	after, err := deployment(w.member["member2"], namespace)
	if err != nil || after.GetUID() != before.GetUID() {
		t.Errorf("the copy is another one: %v", err)
	}
}

func TestTaintsOfPeopleMoveObjects(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t, hasty)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, orderedPolicy)[0], nginx(t))
	w.replicasIn(t, namespace, -1, 2)
	policy := &policyv1alpha1.ClusterTaintPolicy{ObjectMeta: metav1.ObjectMeta{Name: "maintenance"}}
	policy.Spec.TargetClusters = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"member2"}}
	policy.Spec.AddOnConditions = []policyv1alpha1.MatchCondition{{
		ConditionType: clusterv1alpha1.ConditionReady, Operator: policyv1alpha1.MatchConditionIn,
		StatusValues: []metav1.ConditionStatus{metav1.ConditionTrue},
	}}
	policy.Spec.Taints = []policyv1alpha1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoExecute}}
	if err := w.fleet.Create(ctx, policy); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.fleet.Delete(ctx, policy) })
	w.placed(t, namespace, 1, "member1")
	w.healthyIn(t, namespace, "member1")
	w.placed(t, namespace, 0, "member1")
	w.replicasIn(t, namespace, 2, -1)

	policy.Spec.AddOnConditions, policy.Spec.RemoveOnConditions = nil, policy.Spec.AddOnConditions
	if err := w.fleet.Update(ctx, policy); err != nil {
		t.Fatal(err)
	}
	w.placed(t, namespace, 1, "member2")
	w.healthyIn(t, namespace, "member2")
	w.placed(t, namespace, 0, "member2")
	w.replicasIn(t, namespace, -1, 2)
}

// TestUnhealthyCopyMoves: failover of applications, with a process that dies while the clock runs, and state that is
// carried over.
func TestUnhealthyCopyMoves(t *testing.T) {
	w := newWorld(t)
	kill := w.startFederation(t, hasty)
	namespace := w.newNamespace(t)
	policy := parse(t, `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: one}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  propagateDeps: true
  failover:
    application:
      decisionConditions: {tolerationSeconds: 10}
      purgeMode: Immediately
      statePreservation: {rules: [{aliasLabelName: resume.example.com/replicas, jsonPath: "{.replicas}"}]}
    failBack: {mode: Never}
  placement:
    spreadConstraints: [{spreadByField: cluster, maxGroups: 1, minGroups: 1}]
`)[0]
	apply(t, w.fleet, namespace, policy, nginx(t))
	w.placed(t, namespace, 0, "member1")
	w.unhealthyIn(t, namespace, "member1")
	eventually(t, "the clock runs, and the state to carry over is known", func() error {
		b, err := w.bindingOf(namespace)
		if err != nil {
			return err
		}
		copies := b.Status.AggregatedStatus
		if len(b.Status.UnhealthyCopies) == 0 || len(copies) != 1 || copies[0].Status == nil ||
			!strings.Contains(string(copies[0].Status.Raw), `"replicas":2`) {
			return fmt.Errorf("noted: %+v of %+v", b.Status.UnhealthyCopies, copies)
		}
		return nil
	})
	kill()
	w.startFederation(t, hasty)
	w.placed(t, namespace, 0, "member2")
	w.replicasIn(t, namespace, -1, 2)
	object, err := deployment(w.member["member2"], namespace)
	if err != nil || object.GetLabels()["resume.example.com/replicas"] != "2" {
		t.Errorf("labels %v %v", object.GetLabels(), err)
	}
}

// TestUnhealthyEverywhere: an application that fails wherever it is stays in the last cluster, where a version that
// works reaches it.
func TestUnhealthyEverywhere(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t, hasty)
	namespace := w.newNamespace(t)
	policy := parse(t, `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: one}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  propagateDeps: true
  failover:
    application: {decisionConditions: {tolerationSeconds: 1}}
    failBack: {mode: Never}
  placement:
    clusterAffinity: {clusterNames: [member1, member2]}
    spreadConstraints: [{spreadByField: cluster, maxGroups: 1, minGroups: 1}]
`)[0]
	apply(t, w.fleet, namespace, policy, nginx(t))
	w.placed(t, namespace, 0, "member1")
	w.unhealthyIn(t, namespace, "member1")
	w.placed(t, namespace, 1, "member2")
	w.unhealthyIn(t, namespace, "member2")
	eventually(t, "an event says that nothing else can take it", func() error {
		var events eventsv1.EventList
		if err := w.fleet.List(ctx, &events, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Reason == "NowhereElse" {
				return nil
			}
		}
		return fmt.Errorf("none of %d events", len(events.Items))
	})
	w.placed(t, namespace, 1, "member2")

	template, err := deployment(w.fleet, namespace)
	if err != nil {
		t.Fatal(err)
	}
	before := template.DeepCopy()
	if err := unstructured.SetNestedField(template.Object, "repaired", "spec", "template", "metadata", "annotations",
		"version"); err != nil {
		t.Fatal(err)
	}
	if err := w.fleet.Patch(ctx, template, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the repaired version in member2", func() error {
		object, err := deployment(w.member["member2"], namespace)
		if err != nil {
			return err
		}
		if version, _, _ := unstructured.NestedString(object.Object, "spec", "template", "metadata", "annotations",
			"version"); version != "repaired" {
			return fmt.Errorf("version %q", version)
		}
		return nil
	})
	w.healthyIn(t, namespace, "member2")
	w.placed(t, namespace, 0, "member2")
	w.replicasIn(t, namespace, -1, 2)
}

// TestManyDeletionsWait: a policy for 30 objects is deleted by mistake, and made again; then it is deleted on purpose.
func TestManyDeletionsWait(t *testing.T) {
	w := newWorld(t)
	careful := func(options *controllers.Options) { options.Deletions.AtLeast = 5 }
	kill := w.startFederation(t, careful)
	namespace := w.newNamespace(t)
	const objects = 30
	for i := range objects {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("c-%02d", i)}}
		if err := w.fleet.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	policy := parse(t, `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: all}
spec: {resourceSelectors: [{apiVersion: v1, kind: ConfigMap}]}
`)[0]
	apply(t, w.fleet, namespace, policy)
	present := func(want int) {
		t.Helper()
		for _, name := range memberNames {
			eventually(t, fmt.Sprintf("%d objects in %s", want, name), func() error {
				var list corev1.ConfigMapList
				err := w.member[name].List(ctx, &list, client.InNamespace(namespace))
				if err == nil && len(list.Items) != want {
					err = fmt.Errorf("%d", len(list.Items))
				}
				return err
			})
		}
	}
	held := func(want int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d deletions are held", want), func() error {
			count := 0
			for _, name := range memberNames {
				var list workv1alpha1.WorkList
				if err := w.fleet.List(ctx, &list,
					client.InNamespace(clusterv1alpha1.ExecutionNamespace(name))); err != nil {
					return err
				}
				for i := range list.Items {
					if list.Items[i].DeletionTimestamp != nil &&
						meta.IsStatusConditionTrue(list.Items[i].Status.Conditions,
							workv1alpha1.ConditionDeletionHeld) {
						count++
					}
				}
			}
			if count < want {
				return fmt.Errorf("%d", count)
			}
			return nil
		})
	}
	present(objects)
	policy.SetNamespace(namespace)
	remove(t, w.fleet, policy)
	held(objects)
	kill()
	w.startFederation(t, careful)
	for _, name := range memberNames {
		var list corev1.ConfigMapList
		if err := w.member[name].List(ctx, &list, client.InNamespace(namespace)); err != nil ||
			len(list.Items) < objects-10 {
			t.Errorf("%s has %d objects left: %v", name, len(list.Items), err)
		}
		eventually(t, name+" says that deletions wait", func() error {
			cluster := &clusterv1alpha1.Cluster{}
			err := w.fleet.Get(ctx, types.NamespacedName{Name: name}, cluster)
			if err == nil && !meta.IsStatusConditionTrue(cluster.Status.Conditions,
				clusterv1alpha1.ConditionDeletionHeld) {
				err = fmt.Errorf("conditions %v", cluster.Status.Conditions)
			}
			return err
		})
		w.confirmDeletions(t, name)
	}
	present(0)
}

func (w *world) confirmDeletions(t *testing.T, name string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, clusterv1alpha1.ConfirmDeletionAnnotation,
		time.Now().UTC().Add(time.Second).Format(time.RFC3339))
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := w.fleet.Patch(ctx, cluster, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}
