package federation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

func TestLifeOfADeployment(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	objects := input(t, "001-karmada-nginx-3docs")
	apply(t, w.fleet, namespace, objects...)
	w.replicasIn(t, namespace, 1, 1)

	t.Run("overrides", func(t *testing.T) {
		one, _ := deployment(w.member["member1"], namespace)
		if one.GetAnnotations()["env"] != "skoala-stage" || one.GetAnnotations()["emma"] != "" ||
			one.GetLabels()["env"] != "" {
			t.Errorf("member1: %v %v", one.GetAnnotations(), one.GetLabels())
		}
		two, _ := deployment(w.member["member2"], namespace)
		if two.GetLabels()["env"] != "skoala-dev" || two.GetLabels()["env-stat"] != "skoala-stage" ||
			two.GetLabels()["bar"] != "" {
			t.Errorf("member2: %v", two.GetLabels())
		}
	})
	t.Run("status is added up", func(t *testing.T) {
		w.playController(t, namespace)
		eventually(t, "2/2 ready", func() error {
			object, err := deployment(w.fleet, namespace)
			if err != nil {
				return err
			}
			status, _ := object.Object["status"].(map[string]any)
			if status["readyReplicas"] != int64(2) || status["observedGeneration"] != object.GetGeneration() {
				return fmt.Errorf("status %v", status)
			}
			return nil
		})
		w.condition(t, namespace, workv1alpha2.ConditionFullyApplied, metav1.ConditionTrue, "")
		w.condition(t, namespace, workv1alpha2.ConditionScheduled, metav1.ConditionTrue, "placed on member1, member2")
	})
	t.Run("what is changed in a member is put back", func(t *testing.T) {
		object, _ := deployment(w.member["member1"], namespace)
		patch :=
			[]byte(`{"spec":{"replicas":5},"metadata":{"annotations":{"env":"other"},"labels":{"karmada.io/managed":null}}}`)
		if err := w.member["member1"].Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
		w.replicasIn(t, namespace, 1, 1)
		eventually(t, "annotation and label are back", func() error {
			object, err := deployment(w.member["member1"], namespace)
			if err != nil || object.GetAnnotations()["env"] != "skoala-stage" ||
				object.GetLabels()["karmada.io/managed"] != "true" {
				return fmt.Errorf("%v %v %w", object.GetAnnotations(), object.GetLabels(), err)
			}
			return nil
		})
	})
	t.Run("what is removed in a member comes back", func(t *testing.T) {
		object, _ := deployment(w.member["member2"], namespace)
		remove(t, w.member["member2"], object)
		eventually(t, "a new one", func() error {
			again, err := deployment(w.member["member2"], namespace)
			if err != nil || again.GetUID() == object.GetUID() {
				return fmt.Errorf("uid %s %w", again.GetUID(), err)
			}
			return nil
		})
	})
	t.Run("scaling", func(t *testing.T) {
		object, _ := deployment(w.fleet, namespace)
		if err := w.fleet.Patch(ctx, object,
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":6}}`))); err != nil {
			t.Fatal(err)
		}
		w.replicasIn(t, namespace, 3, 3)
	})
	t.Run("nothing is written when nothing changes", func(t *testing.T) { w.quietFor(t, namespace, time.Second) })
	t.Run("removing the policy removes everything", func(t *testing.T) {
		objects[1].SetNamespace(namespace)
		remove(t, w.fleet, objects[1])
		w.nothingLeft(t, namespace)
		if _, err := deployment(w.fleet, namespace); err != nil {
			t.Errorf("the template stays: %v", err)
		}
	})
}

// quietFor waits until no resource version in the fleet and the members has changed for so long. Controllers that never
// cease to write let it wait in vain.
func (w *world) quietFor(t *testing.T, namespace string, period time.Duration) {
	t.Helper()
	versions := func() string {
		var all []string
		note := func(object client.Object, err error) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, object.GetResourceVersion())
		}
		b, err := w.bindingOf(namespace)
		note(b, err)
		template, err := deployment(w.fleet, namespace)
		note(template, err)
		for _, name := range memberNames {
			object, err := deployment(w.member[name], namespace)
			note(object, err)
		}
		var works workv1alpha1.WorkList
		if err := w.fleet.List(ctx, &works); err != nil {
			t.Fatal(err)
		}
		for i := range works.Items {
			if works.Items[i].Annotations[workv1alpha2.NamespaceAnnotation] == namespace {
				note(&works.Items[i], nil)
			}
		}
		return strings.Join(all, " ")
	}
	before, since := versions(), time.Now()
	eventually(t, fmt.Sprintf("nothing is written for %s", period), func() error {
		if now := versions(); now != before {
			err := fmt.Errorf("resource versions went from %s to %s", before, now)
			before, since = now, time.Now()
			return err
		}
		if quiet := time.Since(since); quiet < period {
			return fmt.Errorf("quiet for %s only", quiet)
		}
		return nil
	})
}

func TestDuplicatedWhenNothingIsSaid(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, input(t, "000-karmada-nginx-3docs")[0])
	apply(t, w.fleet, namespace, input(t, "003-karmada-cool-policy")...)
	w.replicasIn(t, namespace, 2, 2)
	template, err := deployment(w.fleet, namespace)
	if err != nil {
		t.Fatal(err)
	}
	remove(t, w.fleet, template)
	w.nothingLeft(t, namespace)
}

func TestSpreadOverOneCluster(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, input(t, "000-karmada-nginx-3docs")[0])
	apply(t, w.fleet, namespace, input(t, "000-karmada-spread")...)
	w.replicasIn(t, namespace, 2, -1)
	w.condition(t, namespace, workv1alpha2.ConditionScheduled, metav1.ConditionTrue,
		"member2: not among the clusters that spec.placement.spreadConstraints[0] allows")
}

func TestKillBetweenTwoMembers(t *testing.T) {
	w := newWorld(t)
	kill := w.startFederation(t)
	namespace := w.newNamespace(t)
	objects := input(t, "001-karmada-nginx-3docs")
	apply(t, w.fleet, namespace, objects...)
	eventually(t, "one member has it", func() error {
		_, err := deployment(w.member["member1"], namespace)
		_, other := deployment(w.member["member2"], namespace)
		if err != nil && other != nil {
			return err
		}
		return nil
	})
	kill()

	t.Run("changes while nobody looks", func(t *testing.T) {
		object, _ := deployment(w.fleet, namespace)
		if err := w.fleet.Patch(ctx, object,
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`))); err != nil {
			t.Fatal(err)
		}
	})
	kill = w.startFederation(t)
	w.replicasIn(t, namespace, 2, 2)
	w.condition(t, namespace, workv1alpha2.ConditionFullyApplied, metav1.ConditionTrue, "")
	kill()

	t.Run("removal while nobody looks", func(t *testing.T) {
		objects[1].SetNamespace(namespace)
		remove(t, w.fleet, objects[1])
		template, _ := deployment(w.fleet, namespace)
		remove(t, w.fleet, template)
	})
	w.startFederation(t)
	w.nothingLeft(t, namespace)
}

func TestForeignObjectsAreNotTouched(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	objects := input(t, "003-karmada-cool-policy")
	template := input(t, "000-karmada-nginx-3docs")[0]
	if err := w.member["member1"].Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	foreign := template.DeepCopy()
	if err := unstructured.SetNestedField(foreign.Object, int64(7), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	apply(t, w.member["member1"], namespace, foreign)
	apply(t, w.fleet, namespace, append(objects, template)...)
	w.condition(t, namespace, workv1alpha2.ConditionFullyApplied, metav1.ConditionFalse,
		"not managed by this fleet; remove it there, or set spec.conflictResolution: Overwrite")
	w.replicasIn(t, namespace, 7, 2)

	policy := objects[0].DeepCopy()
	if err := unstructured.SetNestedField(policy.Object, "Overwrite", "spec", "conflictResolution"); err != nil {
		t.Fatal(err)
	}
	apply(t, w.fleet, namespace, policy)
	w.replicasIn(t, namespace, 2, 2)
}

func TestClusterWideObjects(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	apply(t, w.fleet, "", parse(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: fleet-test}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: roles}
spec:
  resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: fleet-test}]
`)...)
	t.Cleanup(func() { remove(t, w.fleet, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "fleet-test"}}) })
	role := func(name string) error {
		_, err := get(w.member[name], "rbac.authorization.k8s.io/v1", "ClusterRole", "", "fleet-test")
		return err
	}
	for _, name := range memberNames {
		eventually(t, name+" has the role", func() error { return role(name) })
	}
	policy, err := get(w.fleet, "policy.karmada.io/v1alpha1", "ClusterPropagationPolicy", "", "roles")
	if err != nil {
		t.Fatal(err)
	}
	remove(t, w.fleet, policy)
	for _, name := range memberNames {
		eventually(t, name+" has lost the role", func() error { return wantGone(role(name)) })
	}
}

func TestStatusIsClearedWhenThePolicyGoes(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	objects := input(t, "003-karmada-cool-policy")
	apply(t, w.fleet, namespace, objects[0], input(t, "000-karmada-nginx-3docs")[0])
	w.replicasIn(t, namespace, 2, 2)
	w.playController(t, namespace)
	ready := func(want int64) func() error {
		return func() error {
			object, err := deployment(w.fleet, namespace)
			if err != nil {
				return err
			}
			if got, _, _ := unstructured.NestedInt64(object.Object, "status", "readyReplicas"); got != want {
				return fmt.Errorf("%d are ready", got)
			}
			return nil
		}
	}
	eventually(t, "all are ready", ready(4))
	objects[0].SetNamespace(namespace)
	remove(t, w.fleet, objects[0])
	w.nothingLeft(t, namespace)
	eventually(t, "none is ready", ready(0))
}
