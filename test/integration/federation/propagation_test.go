package federation

import (
	"errors"
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
	startFederation(t)
	namespace := newNamespace(t)
	objects := input(t, "001-karmada-nginx-3docs")
	apply(t, fleet, namespace, objects...)
	replicasIn(t, namespace, 1, 1)

	t.Run("overrides", func(t *testing.T) {
		one, _ := deployment(member["member1"], namespace)
		if one.GetAnnotations()["env"] != "skoala-stage" || one.GetAnnotations()["emma"] != "" || one.GetLabels()["env"] != "" {
			t.Errorf("member1: %v %v", one.GetAnnotations(), one.GetLabels())
		}
		two, _ := deployment(member["member2"], namespace)
		if two.GetLabels()["env"] != "skoala-dev" || two.GetLabels()["env-stat"] != "skoala-stage" || two.GetLabels()["bar"] != "" {
			t.Errorf("member2: %v", two.GetLabels())
		}
	})
	t.Run("status is added up", func(t *testing.T) {
		playController(t, namespace)
		eventually(t, "2/2 ready", func() error {
			object, err := deployment(fleet, namespace)
			if err != nil {
				return err
			}
			status, _ := object.Object["status"].(map[string]any)
			if status["readyReplicas"] != int64(2) || status["observedGeneration"] != object.GetGeneration() {
				return fmt.Errorf("status %v", status)
			}
			return nil
		})
		condition(t, namespace, workv1alpha2.ConditionFullyApplied, metav1.ConditionTrue, "")
		condition(t, namespace, workv1alpha2.ConditionScheduled, metav1.ConditionTrue, "placed on member1, member2")
	})
	t.Run("what is changed in a member is put back", func(t *testing.T) {
		object, _ := deployment(member["member1"], namespace)
		patch := []byte(`{"spec":{"replicas":5},"metadata":{"annotations":{"env":"other"},"labels":{"karmada.io/managed":null}}}`)
		if err := member["member1"].Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
		replicasIn(t, namespace, 1, 1)
		eventually(t, "annotation and label are back", func() error {
			object, err := deployment(member["member1"], namespace)
			if err != nil || object.GetAnnotations()["env"] != "skoala-stage" || object.GetLabels()["karmada.io/managed"] != "true" {
				return fmt.Errorf("%v %v %w", object.GetAnnotations(), object.GetLabels(), err)
			}
			return nil
		})
	})
	t.Run("what is removed in a member comes back", func(t *testing.T) {
		object, _ := deployment(member["member2"], namespace)
		remove(t, member["member2"], object)
		eventually(t, "a new one", func() error {
			again, err := deployment(member["member2"], namespace)
			if err != nil || again.GetUID() == object.GetUID() {
				return fmt.Errorf("uid %s %w", again.GetUID(), err)
			}
			return nil
		})
	})
	t.Run("scaling", func(t *testing.T) {
		object, _ := deployment(fleet, namespace)
		if err := fleet.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":6}}`))); err != nil {
			t.Fatal(err)
		}
		replicasIn(t, namespace, 3, 3)
	})
	t.Run("nothing is written when nothing changes", func(t *testing.T) { quietFor(t, namespace, time.Second) })
	t.Run("removing the policy removes everything", func(t *testing.T) {
		objects[1].SetNamespace(namespace)
		remove(t, fleet, objects[1])
		nothingLeft(t, namespace)
		if _, err := deployment(fleet, namespace); err != nil {
			t.Errorf("the template stays: %v", err)
		}
	})
}

// quietFor watches resource versions in the fleet and the members.
func quietFor(t *testing.T, namespace string, period time.Duration) {
	t.Helper()
	versions := func() string {
		var all []string
		note := func(object client.Object, err error) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, object.GetResourceVersion())
		}
		b, err := bindingOf(namespace)
		note(b, err)
		template, err := deployment(fleet, namespace)
		note(template, err)
		for _, name := range memberNames {
			object, err := deployment(member[name], namespace)
			note(object, err)
		}
		var works workv1alpha1.WorkList
		if err := fleet.List(ctx, &works); err != nil {
			t.Fatal(err)
		}
		for i := range works.Items {
			if works.Items[i].Annotations[workv1alpha2.NamespaceAnnotation] == namespace {
				note(&works.Items[i], nil)
			}
		}
		return strings.Join(all, " ")
	}
	var before string
	eventually(t, "everything has settled", func() error {
		last := before
		before = versions()
		time.Sleep(200 * time.Millisecond)
		if last != before {
			return errors.New("versions still change")
		}
		return nil
	})
	time.Sleep(period)
	if after := versions(); after != before {
		t.Errorf("resource versions went from %s to %s", before, after)
	}
}

func TestDuplicatedWhenNothingIsSaid(t *testing.T) {
	startFederation(t)
	namespace := newNamespace(t)
	apply(t, fleet, namespace, input(t, "000-karmada-nginx-3docs")[0])
	apply(t, fleet, namespace, input(t, "003-karmada-cool-policy")...)
	replicasIn(t, namespace, 2, 2)
	template, err := deployment(fleet, namespace)
	if err != nil {
		t.Fatal(err)
	}
	remove(t, fleet, template)
	nothingLeft(t, namespace)
}

func TestSpreadOverOneCluster(t *testing.T) {
	startFederation(t)
	namespace := newNamespace(t)
	apply(t, fleet, namespace, input(t, "000-karmada-nginx-3docs")[0])
	apply(t, fleet, namespace, input(t, "000-karmada-spread")...)
	replicasIn(t, namespace, 2, -1)
	condition(t, namespace, workv1alpha2.ConditionScheduled, metav1.ConditionTrue, "member2: not among the clusters that spec.placement.spreadConstraints[0] allows")
}

func TestKillBetweenTwoMembers(t *testing.T) {
	kill := startFederation(t)
	namespace := newNamespace(t)
	objects := input(t, "001-karmada-nginx-3docs")
	apply(t, fleet, namespace, objects...)
	eventually(t, "one member has it", func() error {
		_, err := deployment(member["member1"], namespace)
		_, other := deployment(member["member2"], namespace)
		if err != nil && other != nil {
			return err
		}
		return nil
	})
	kill()

	t.Run("changes while nobody looks", func(t *testing.T) {
		object, _ := deployment(fleet, namespace)
		if err := fleet.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`))); err != nil {
			t.Fatal(err)
		}
	})
	kill = startFederation(t)
	replicasIn(t, namespace, 2, 2)
	condition(t, namespace, workv1alpha2.ConditionFullyApplied, metav1.ConditionTrue, "")
	kill()

	t.Run("removal while nobody looks", func(t *testing.T) {
		objects[1].SetNamespace(namespace)
		remove(t, fleet, objects[1])
		template, _ := deployment(fleet, namespace)
		remove(t, fleet, template)
	})
	startFederation(t)
	nothingLeft(t, namespace)
}

func TestForeignObjectsAreNotTouched(t *testing.T) {
	startFederation(t)
	namespace := newNamespace(t)
	objects := input(t, "003-karmada-cool-policy")
	template := input(t, "000-karmada-nginx-3docs")[0]
	if err := member["member1"].Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	foreign := template.DeepCopy()
	if err := unstructured.SetNestedField(foreign.Object, int64(7), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	apply(t, member["member1"], namespace, foreign)
	apply(t, fleet, namespace, append(objects, template)...)
	condition(t, namespace, workv1alpha2.ConditionFullyApplied, metav1.ConditionFalse, "not managed by this fleet; remove it there, or set spec.conflictResolution: Overwrite")
	replicasIn(t, namespace, 7, 2)

	policy := objects[0].DeepCopy()
	if err := unstructured.SetNestedField(policy.Object, "Overwrite", "spec", "conflictResolution"); err != nil {
		t.Fatal(err)
	}
	apply(t, fleet, namespace, policy)
	replicasIn(t, namespace, 2, 2)
}

func TestClusterWideObjects(t *testing.T) {
	startFederation(t)
	apply(t, fleet, "", parse(t, `
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
	t.Cleanup(func() { remove(t, fleet, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "fleet-test"}}) })
	role := func(name string) error {
		_, err := get(member[name], "rbac.authorization.k8s.io/v1", "ClusterRole", "", "fleet-test")
		return err
	}
	for _, name := range memberNames {
		eventually(t, name+" has the role", func() error { return role(name) })
	}
	policy, err := get(fleet, "policy.karmada.io/v1alpha1", "ClusterPropagationPolicy", "", "roles")
	if err != nil {
		t.Fatal(err)
	}
	remove(t, fleet, policy)
	for _, name := range memberNames {
		eventually(t, name+" has lost the role", func() error { return wantGone(role(name)) })
	}
}

func TestStatusIsClearedWhenThePolicyGoes(t *testing.T) {
	startFederation(t)
	namespace := newNamespace(t)
	objects := input(t, "003-karmada-cool-policy")
	apply(t, fleet, namespace, objects[0], input(t, "000-karmada-nginx-3docs")[0])
	replicasIn(t, namespace, 2, 2)
	playController(t, namespace)
	ready := func(want int64) func() error {
		return func() error {
			object, err := deployment(fleet, namespace)
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
	remove(t, fleet, objects[0])
	nothingLeft(t, namespace)
	eventually(t, "none is ready", ready(0))
}
