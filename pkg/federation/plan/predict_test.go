package plan

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/budget"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
	"github.com/trellis-garden/trellis/pkg/federation/overrides"
	"github.com/trellis-garden/trellis/pkg/federation/policies"
	"github.com/trellis-garden/trellis/pkg/federation/references"
)

// member serves Deployments and ConfigMaps and has room for that many CPUs.
func member(name string, cpus int64) clusterv1alpha1.Cluster {
	c := clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{
		{GroupVersion: "apps/v1", Resources: []clusterv1alpha1.APIResource{{Name: "deployments", Kind: "Deployment"}}},
		{GroupVersion: "v1", Resources: []clusterv1alpha1.APIResource{{Name: "configmaps", Kind: "ConfigMap"}}},
	}
	c.Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU:  *resource.NewQuantity(cpus, resource.DecimalSI),
		corev1.ResourcePods: resource.MustParse("1000"),
	}}
	return c
}

// web is a Deployment whose replicas ask for one CPU each.
func web(name string, replicas int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": name, "namespace": "shop", "uid": name, "labels": map[string]any{"app": "shop"},
		},
		"spec": map[string]any{"replicas": replicas,
			"template": map[string]any{"spec": map[string]any{"containers": []any{
				map[string]any{
					"name": "web", "image": "web", "resources": map[string]any{"requests": map[string]any{"cpu": "1"}},
				},
			}}}},
	}}
}

func policy(name string, placement policyv1alpha1.Placement) policies.Policy {
	p := &policyv1alpha1.PropagationPolicy{}
	p.Namespace, p.Name = "shop", name
	p.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}}
	p.Spec.Placement = placement
	result, _ := policies.Of(p)
	return result
}

func on(clusters ...string) policyv1alpha1.Placement {
	return policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}}
}

func byRoom() policyv1alpha1.Placement {
	return policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated,
	}}
}

// bound is the binding of an object that a policy has placed.
func bound(object *unstructured.Unstructured, p policies.Policy, clusters ...string) *workv1alpha2.ResourceBinding {
	b := bindings.NewFor(object).(*workv1alpha2.ResourceBinding)
	p.Claim(b)
	b.Spec.Placement = p.Spec.Placement.DeepCopy()
	b.Spec.Replicas, _, _ = unstructuredReplicas(object)
	for _, c := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: c, Replicas: b.Spec.Replicas})
	}
	return b
}

func unstructuredReplicas(object *unstructured.Unstructured) (int32, bool, error) {
	n, found, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
	return int32(n), found, err
}

func input(t *testing.T, now, then Rules, objects ...*unstructured.Unstructured) *Input {
	t.Helper()
	skipped, err := policies.NewSkipped(policies.DefaultSkippedNamespaces)
	if err != nil {
		t.Fatal(err)
	}
	in := &Input{
		Now: now, Then: then, Interpreter: interpreter.New(), Skipped: skipped, Budget: budget.Default(),
		At:     time.Unix(1e9, 0),
		Serves: func(kind schema.GroupVersionKind) bool { return kind.Kind != "Deploymint" },
		Find:   func(context.Context, references.Reference) ([]*unstructured.Unstructured, error) { return nil, nil },
	}
	for _, object := range objects {
		in.Objects = append(in.Objects, Object{Now: object, Then: object})
	}
	return in
}

// told is a plan in short: "web: m1 Added 0->2; m2 Removed 1->0".
func told(p *Plan) string {
	var lines []string
	for _, o := range p.Objects {
		var clusters []string
		for _, c := range o.Clusters {
			clusters = append(clusters, fmt.Sprintf("%s %s %d->%d", c.Name, c.Effect, deref(c.ReplicasNow),
				deref(c.ReplicasThen)))
		}
		lines = append(lines, o.Name+": "+strings.Join(clusters, "; "))
	}
	return strings.Join(lines, " | ")
}

func TestPredict(t *testing.T) {
	clusters := []clusterv1alpha1.Cluster{member("m1", 4), member("m2", 4)}
	a, b := policy("a", on("m1")), policy("b", on("m2"))
	kept := bound(web("web", 2), a, "m1")
	kept.Spec.PreserveResourcesOnDeletion = new(true)
	suspended := bound(web("web", 2), a, "m1")
	suspended.Spec.Suspension = &workv1alpha2.Suspension{Scheduling: new(true)}
	quota := policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "small"}}
	quota.Spec.Overall = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}
	tests := map[string]struct {
		now, then []policies.Policy
		quotas    []policyv1alpha1.FederatedResourceQuota
		binding   *workv1alpha2.ResourceBinding
		want      string
		note      string
	}{
		"a first policy": {then: []policies.Policy{a}, want: "web: m1 Added 0->2"},
		"the holder keeps it": {
			now: []policies.Policy{a}, then: []policies.Policy{a, b}, binding: bound(web("web", 2), a, "m1"), want: "",
		},
		"the holder goes": {
			now: []policies.Policy{a}, then: []policies.Policy{b}, binding: bound(web("web", 2), a, "m1"),
			want: "web: m1 Removed 2->0; m2 Added 0->2",
		},
		"no policy is left": {
			now: []policies.Policy{a}, binding: bound(web("web", 2), a, "m1"), want: "web: m1 Removed 2->0",
		},
		"preserved": {now: []policies.Policy{a}, binding: kept, want: "web: m1 Kept 2->0"},
		"another number of replicas": {
			now: []policies.Policy{a}, then: []policies.Policy{a}, binding: bound(web("web", 1), a, "m1"),
			want: "web: m1 Scaled 1->2",
		},
		"scheduling is suspended": {
			now: []policies.Policy{a}, then: []policies.Policy{policy("a", on("m2"))}, binding: suspended,
			want: "web: m1 Unchanged 2->2", note: "suspended",
		},
		"a policy that is refused": {
			now: []policies.Policy{a}, then: []policies.Policy{policy("a", on(strings.Repeat("m", 64<<10)))},
			binding: bound(web("web", 2), a, "m1"),
			want:    "web: m1 Unchanged 2->2", note: "PropagationPolicy shop/a: spec.placement has",
		},
		"beyond a quota": {
			now: []policies.Policy{a}, then: []policies.Policy{policy("a", on("m1", "m2"))},
			quotas:  []policyv1alpha1.FederatedResourceQuota{quota},
			binding: bound(web("web", 2), a, "m1"), want: "web: m1 Unchanged 2->2",
			note: "FederatedResourceQuota shop/small",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := input(t, Rules{Policies: tc.now, Clusters: clusters, Quotas: tc.quotas},
				Rules{Policies: tc.then, Clusters: clusters, Quotas: tc.quotas}, web("web", 2))
			if tc.binding != nil {
				in.Bindings = []bindings.Binding{tc.binding}
			}
			p := Predict(t.Context(), in)
			if got := told(p); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if tc.note != "" && !strings.Contains(strings.Join(p.Objects[0].Notes, "\n"), tc.note) {
				t.Errorf("got notes %q, want %q", p.Objects[0].Notes, tc.note)
			}
		})
	}
}

func TestRoomIsNotPromisedTwice(t *testing.T) {
	rules := Rules{
		Policies: []policies.Policy{policy("a", byRoom())}, Clusters: []clusterv1alpha1.Cluster{member("m1", 4)},
	}
	p := Predict(t.Context(), input(t, Rules{Clusters: rules.Clusters}, rules, web("first", 3), web("second", 3)))
	if got, want := told(p), "first: m1 Added 0->3 | second: "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if p.Summary.Unplaced != 1 {
		t.Errorf("got %+v", p.Summary)
	}
}

func TestPredictionChangesNothingAndIsDeterministic(t *testing.T) {
	clusters := []clusterv1alpha1.Cluster{member("m1", 40), member("m2", 40)}
	old, fresh := policy("a", on("m1")), policy("a", byRoom())
	var objects []*unstructured.Unstructured
	var existing []bindings.Binding
	for i := range 20 {
		objects = append(objects, web(fmt.Sprintf("web%d", i), int64(i%5)))
		existing = append(existing, bound(objects[i], old, "m1"))
	}
	in := input(t, Rules{Policies: []policies.Policy{old}, Clusters: clusters},
		Rules{Policies: []policies.Policy{fresh}, Clusters: clusters}, objects...)
	in.Bindings = existing
	before := existing[3].DeepCopyObject()
	first := Predict(t.Context(), in)
	for i := range in.Objects {
		j := len(in.Objects) - 1 - i
		if i < j {
			in.Objects[i], in.Objects[j] = in.Objects[j], in.Objects[i]
		}
	}
	if second := Predict(t.Context(), in); !reflect.DeepEqual(first, second) {
		t.Errorf("another order gives another plan:\n%s\n%s", told(first), told(second))
	}
	if !reflect.DeepEqual(before, existing[3].DeepCopyObject()) {
		t.Error("the binding was changed")
	}
}

func TestWhatTheBudgetHolds(t *testing.T) {
	a := policy("a", on("m1"))
	clusters := []clusterv1alpha1.Cluster{member("m1", 4), member("m2", 4)}
	in := input(t, Rules{Policies: []policies.Policy{a}, Clusters: clusters}, Rules{Clusters: clusters})
	for i := range 30 {
		object := web(fmt.Sprintf("web%d", i), 1)
		in.Objects = append(in.Objects, Object{Now: object, Then: object})
		in.Bindings = append(in.Bindings, bound(object, a, "m1"))
	}
	p := Predict(t.Context(), in)
	if want := []Held{{Cluster: "m1", Deletions: 30, Objects: 30, Allowance: 20}}; !reflect.DeepEqual(p.Held, want) {
		t.Errorf("got %+v, want %+v", p.Held, want)
	}
	in.Objects = in.Objects[:15]
	if p := Predict(t.Context(), in); len(p.Held) != 0 {
		t.Errorf("15 of 30: got %+v", p.Held)
	}
}

func TestAGroupStaysApart(t *testing.T) {
	placement := policyv1alpha1.Placement{
		SpreadConstraints: []policyv1alpha1.SpreadConstraint{
			{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MaxGroups: new(1), MinGroups: new(1)},
		},
		WorkloadAffinity: &policyv1alpha1.WorkloadAffinity{
			AntiAffinity: &policyv1alpha1.WorkloadAffinityTerm{GroupByLabelKey: "app"},
		},
	}
	clusters := []clusterv1alpha1.Cluster{member("m1", 4), member("m2", 4)}
	p := Predict(t.Context(), input(t, Rules{Clusters: clusters},
		Rules{Policies: []policies.Policy{policy("a", placement)}, Clusters: clusters}, web("first", 1),
		web("second", 1)))
	if len(p.Objects) != 2 || p.Objects[0].Clusters[0].Name == p.Objects[1].Clusters[0].Name {
		t.Errorf("got %s", told(p))
	}
}

func TestPoliciesThatArePassedOver(t *testing.T) {
	clusters := []clusterv1alpha1.Cluster{member("m1", 4), member("m2", 4)}
	a, b := policy("a", on("m1")), policy("b", on("m2"))
	b.Spec.Priority = new(int32(5))
	rules := Rules{Policies: []policies.Policy{a, b}, Clusters: clusters}
	const needs = "an object keeps its policy; to take it over, this one needs spec.preemption: Always, which asks " +
		"for a name in each of its spec.resourceSelectors"
	want := []PassedOver{{Policy: "PropagationPolicy shop/b", Reason: needs, Objects: []KeptObject{
		{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "db", Policy: "PropagationPolicy shop/a"},
		{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", Policy: "PropagationPolicy shop/a"},
	}}}
	for _, action := range []Action{ActionCreate, ActionUpdate, ActionUnchanged} {
		in := input(t, rules, rules, web("web", 2), web("db", 2))
		in.Bindings = []bindings.Binding{bound(web("web", 2), a, "m1"), bound(web("db", 2), a, "m1")}
		in.Documents = []Document{
			{
				Action: action, APIVersion: "policy.karmada.io/v1alpha1", Kind: "PropagationPolicy", Namespace: "shop",
				Name: "b",
			},
		}
		if p := Predict(t.Context(), in); !reflect.DeepEqual(p.PassedOver, want) || !p.Empty() ||
			p.Summary.Examined != 2 {
			t.Errorf("%s: got %+v, summary %+v", action, p.PassedOver, p.Summary)
		}
	}
	in := input(t, rules, rules, web("web", 2))
	in.Documents = []Document{
		{Action: ActionUpdate, APIVersion: "policy.karmada.io/v1alpha1", Kind: "ClusterPropagationPolicy", Name: "b"},
	}
	if p := Predict(t.Context(), in); len(p.PassedOver) != 0 {
		t.Errorf("b is not of the documents: got %+v", p.PassedOver)
	}
}

func TestNothingIsPredictedOfUnconcernedObjects(t *testing.T) {
	rules := Rules{
		Policies: []policies.Policy{policy("a", on("m1"))}, Clusters: []clusterv1alpha1.Cluster{member("m1", 4)},
	}
	in := input(t, rules, rules, web("web", 2)) // Not placed yet; that is nothing the plan would do.
	in.Objects[0].Unconcerned = true
	if p := Predict(t.Context(), in); !p.Empty() || len(p.Objects) != 0 || p.Summary.Examined != 1 {
		t.Errorf("got %s, summary %+v", told(p), p.Summary)
	}
}

func TestBrokenOverrideIsNoted(t *testing.T) {
	a := policy("a", on("m1"))
	rules := Rules{Policies: []policies.Policy{a}, Clusters: []clusterv1alpha1.Cluster{member("m1", 4)}}
	then := rules
	then.Overrides = []overrides.Policy{{Namespace: "shop", Name: "broken",
		Spec: &policyv1alpha1.OverrideSpec{OverrideRules: []policyv1alpha1.RuleWithCluster{{
			Overriders: policyv1alpha1.Overriders{
				Plaintext: []policyv1alpha1.PlaintextOverrider{
					{Path: "/spec/nothing", Operator: policyv1alpha1.OverriderOpRemove},
				},
			},
		}}}}}
	in := input(t, rules, then, web("web", 2))
	in.Bindings = []bindings.Binding{bound(web("web", 2), a, "m1")}
	p := Predict(t.Context(), in)
	if len(p.Objects) != 1 || !strings.Contains(strings.Join(p.Objects[0].Notes, ""), "OverridePolicy shop/broken") ||
		!p.Empty() {
		t.Errorf("got %+v", p.Objects)
	}
}
