package federation

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// warned waits for an event about the object whose note contains all parts.
func (w *world) warned(t *testing.T, namespace, reason string, parts ...string) {
	t.Helper()
	eventually(t, "event "+reason, func() error {
		var list eventsv1.EventList
		if err := w.fleet.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		var notes []string
		for _, event := range list.Items {
			if event.Reason != reason {
				continue
			}
			missing := false
			for _, part := range parts {
				missing = missing || !strings.Contains(event.Note, part)
			}
			if !missing {
				return nil
			}
			notes = append(notes, event.Note)
		}
		return fmt.Errorf("the notes are %.500q", notes)
	})
}

func toBothMembers(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	return parse(t, `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: both}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  placement: {clusterAffinity: {clusterNames: [member1, member2]}}
`)[0]
}

// TestLargeSelector selects by a list of a megabyte, which is refused in words, and by one as large as may be.
func TestLargeSelector(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	selecting := func(count int) *unstructured.Unstructured {
		policy := toBothMembers(t)
		values := []any{"nginx"}
		for i := 1; i < count; i++ {
			values = append(values, fmt.Sprintf("no-app-with-this-name-%d", i))
		}
		policy.Object["spec"].(map[string]any)["resourceSelectors"] = []any{map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"labelSelector": map[string]any{
				"matchExpressions": []any{map[string]any{"key": "app", "operator": "In", "values": values}},
			},
		}}
		return in(namespace, policy)
	}
	err := w.fleet.Create(ctx, selecting(40_000))
	if err == nil || !strings.Contains(err.Error(), "labelSelector") || !strings.Contains(err.Error(), "1000 values") {
		t.Fatalf("a selector of a megabyte: %.1000v", err)
	}
	if err := w.fleet.Create(ctx, selecting(1000)); err != nil {
		t.Fatal(err)
	}
	apply(t, w.fleet, namespace, nginx(t))
	w.replicasIn(t, namespace, 2, 2)
}

// TestLargePlacement is refused by name and reason, and holds up nobody else.
func TestLargePlacement(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace, other := w.newNamespace(t), w.newNamespace(t)
	policy := toBothMembers(t)
	var names []any
	for i := range 10_000 {
		names = append(names, fmt.Sprintf("cluster-%d", i))
	}
	if err := unstructured.SetNestedSlice(policy.Object, names, "spec", "placement", "clusterAffinity",
		"clusterNames"); err != nil {
		t.Fatal(err)
	}
	if err := w.fleet.Create(ctx, in(namespace, policy)); err != nil {
		t.Fatal(err)
	}
	apply(t, w.fleet, namespace, nginx(t))
	w.warned(t, namespace, "NotPropagated", "spec.placement", "65536")
	apply(t, w.fleet, other, toBothMembers(t), nginx(t))
	w.replicasIn(t, other, 2, 2)
	w.replicasIn(t, namespace, -1, -1)
	remove(t, w.fleet, in(namespace, toBothMembers(t)))
	apply(t, w.fleet, namespace, toBothMembers(t))
	w.replicasIn(t, namespace, 2, 2)
}

// TestOverridesThatExplode make an object larger than can be stored. The binding says so, for the cluster that they are
// for.
func TestOverridesThatExplode(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	var overriders strings.Builder
	for i := range 8 {
		fmt.Fprintf(&overriders, "\n        - {path: /metadata/annotations/huge-%d, operator: add, value: %q}", i,
			strings.Repeat("x", 120_000))
	}
	many := func(name string) *unstructured.Unstructured {
		return parse(t, `
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: `+name+`}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  overrideRules:
  - targetCluster: {clusterNames: [member2]}
    overriders:
      plaintext:`+strings.ReplaceAll(overriders.String(), "huge", name))[0]
	}
	for _, name := range []string{"one", "two", "three"} {
		if err := w.fleet.Create(ctx, in(namespace, many(name))); err != nil {
			t.Fatal(err)
		}
	}
	object := nginx(t)
	object.SetAnnotations(map[string]string{"a": "b"})
	apply(t, w.fleet, namespace, toBothMembers(t), object)
	w.replicasIn(t, namespace, 2, -1)
	eventually(t, "the binding says what is wrong with member2", func() error {
		b, err := w.bindingOf(namespace)
		if err != nil {
			return err
		}
		for _, item := range b.Status.AggregatedStatus {
			if item.ClusterName == "member2" && !item.Applied && strings.Contains(item.AppliedMessage, "too large") {
				return nil
			}
		}
		return fmt.Errorf("the statuses are %+v", b.Status.AggregatedStatus)
	})
	w.condition(t, namespace, workv1alpha2.ConditionFullyApplied, "False", "member2")
	var errs []error
	for _, name := range []string{"one", "two", "three"} {
		errs = append(errs, w.fleet.Delete(ctx, in(namespace, many(name))))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	w.replicasIn(t, namespace, 2, 2)
	w.condition(t, namespace, workv1alpha2.ConditionFullyApplied, "True", "")
}
