package policies

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
)

func webDeployment() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "shop"},
	}}
}

// policyOf selects every Deployment, or by name the one called web. An empty namespace makes it cluster-wide.
func policyOf(namespace, name string, priority int32, byName bool,
	preemption policyv1alpha1.PreemptionBehavior) Policy {
	selector := policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment"}
	if byName {
		selector.Name = "web"
	}
	spec := policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{selector}, Priority: &priority, Preemption: preemption,
	}
	if namespace == "" {
		policy := &policyv1alpha1.ClusterPropagationPolicy{Spec: spec}
		policy.Name = name
		return Policy{policy, &policy.Spec}
	}
	policy := &policyv1alpha1.PropagationPolicy{Spec: spec}
	policy.Namespace, policy.Name = namespace, name
	return Policy{policy, &policy.Spec}
}

func TestChoose(t *testing.T) {
	const never, always = policyv1alpha1.PreemptNever, policyv1alpha1.PreemptAlways
	tests := map[string]struct {
		policies []Policy
		// holder is the index of the policy that has the object, -1 for none.
		holder int
		want   string
	}{
		"none":                 {nil, -1, ""},
		"of another namespace": {[]Policy{policyOf("other", "a", 0, false, never)}, -1, ""},
		"namespaced before cluster-wide": {
			[]Policy{policyOf("", "a", 9, true, never), policyOf("shop", "b", 0, false, never)}, -1, "b",
		},
		"higher priority": {
			[]Policy{policyOf("shop", "a", 0, true, never), policyOf("shop", "b", 1, false, never)}, -1, "b",
		},
		"closer selector": {
			[]Policy{policyOf("shop", "a", 0, false, never), policyOf("shop", "b", 0, true, never)}, -1, "b",
		},
		"smaller name": {
			[]Policy{policyOf("shop", "b", 0, false, never), policyOf("shop", "a", 0, false, never)}, -1, "a",
		},
		"the holder keeps it": {
			[]Policy{policyOf("shop", "a", 9, true, never), policyOf("shop", "b", 0, false, never)}, 1, "b",
		},
		"a higher priority preempts": {
			[]Policy{policyOf("shop", "a", 9, true, always), policyOf("shop", "b", 0, false, never)}, 1, "a",
		},
		"the same priority doesn't preempt": {
			[]Policy{policyOf("shop", "a", 0, true, always), policyOf("shop", "b", 0, false, never)}, 1, "b",
		},
		"namespaced preempts cluster-wide": {
			[]Policy{policyOf("shop", "a", 0, true, always), policyOf("", "b", 9, false, never)}, 1, "a",
		},
		// Numbers of pkg/detector/preemption_test.go and compare_test.go of the published implementation, v1.12.0 and
		// later.
		"3 of 2, 3 and 4: only larger ones": {
			[]Policy{
				policyOf("shop", "two", 2, true, always), policyOf("shop", "four", 4, true, never),
				policyOf("shop", "three", 3, true, always),
			}, 0, "three",
		},
		"of 3 and 4, the largest": {
			[]Policy{
				policyOf("shop", "two", 2, true, always), policyOf("shop", "three", 3, true, always),
				policyOf("shop", "four", 4, true, always),
			}, 0, "four",
		},
		"cluster-wide, the same": {
			[]Policy{
				policyOf("", "two", 2, true, always), policyOf("", "three", 3, true, always),
				policyOf("", "four", 4, true, always),
			}, 0, "four",
		},
		"none larger that may": {
			[]Policy{policyOf("shop", "two", 2, true, always), policyOf("shop", "four", 4, true, never)}, 0, "two",
		},
		"larger, by kind, over name": {
			[]Policy{policyOf("shop", "a", 1, true, never), policyOf("shop", "b", 2, false, never)}, -1, "b",
		},
		"-1 by name under 0 by kind": {
			[]Policy{policyOf("shop", "a", -1, true, never), policyOf("shop", "b", 0, false, never)}, -1, "b",
		},
		"1 by name over 0 by name": {
			[]Policy{policyOf("shop", "a", 0, true, never), policyOf("shop", "b", 1, true, never)}, -1, "b",
		},
		"1 by name twice, the smaller name": {
			[]Policy{policyOf("", "b", 1, true, never), policyOf("", "a", 1, true, never)}, -1, "a",
		},
		"1 by name over 1 by kind": {
			[]Policy{policyOf("", "b", 1, true, never), policyOf("", "a", 1, false, never)}, -1, "b",
		},
		"cluster-wide doesn't preempt namespaced": {
			[]Policy{policyOf("", "a", 9, true, always), policyOf("shop", "b", 0, false, never)}, 1, "b",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var existing bindings.Binding
			if tc.holder >= 0 {
				existing = &workv1alpha2.ResourceBinding{}
				tc.policies[tc.holder].Claim(existing)
			}
			got := ""
			if policy := Choose(tc.policies, webDeployment(), existing); policy != nil {
				got = policy.GetName()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestWhyNot(t *testing.T) {
	const never, always = policyv1alpha1.PreemptNever, policyv1alpha1.PreemptAlways
	byLabels := policyOf("shop", "labels", 1, false, never)
	byLabels.Spec.ResourceSelectors[0].LabelSelector = &metav1.LabelSelector{
		MatchLabels: map[string]string{"app": "web"},
	}
	tests := map[string]struct {
		policies []Policy
		// holder is the index of the policy that has the object, -1 for none. The first policy is asked.
		holder int
		want   string
	}{
		"it is chosen": {
			[]Policy{policyOf("shop", "a", 0, false, never), policyOf("shop", "b", 0, false, never)}, -1, "",
		},
		"it doesn't select": {
			[]Policy{policyOf("other", "a", 0, false, never), policyOf("shop", "b", 0, false, never)}, -1, "",
		},
		"cluster-wide": {
			[]Policy{policyOf("", "a", 9, true, never), policyOf("shop", "b", 0, false, never)}, -1,
			"a namespaced policy goes before a cluster-wide one",
		},
		"lower priority": {
			[]Policy{policyOf("shop", "a", 1, true, never), policyOf("shop", "b", 5, false, never)}, -1,
			"the larger spec.priority goes first: 5, this one has 1",
		},
		"by kind, the other by name": {
			[]Policy{policyOf("shop", "a", 1, false, never), policyOf("shop", "b", 1, true, never)}, -1,
			"by name goes before one that selects by kind",
		},
		"by kind, the other by labels": {
			[]Policy{policyOf("shop", "a", 1, false, never), byLabels}, -1,
			"by labels goes before one that selects by kind",
		},
		"larger name": {
			[]Policy{policyOf("shop", "b", 1, false, never), policyOf("shop", "a", 1, false, never)}, -1,
			"the smaller name goes first",
		},
		"never preempts": {
			[]Policy{policyOf("shop", "a", 9, true, never), policyOf("shop", "b", 0, true, never)}, 1,
			"this one needs spec.preemption: Always, which asks for a name in each of its spec.resourceSelectors",
		},
		"never, and no priority": {[]Policy{
			policyOf("shop", "a", 0, true, never), policyOf("shop", "b", 3, true, never),
		}, 1,
			"this one needs spec.preemption: Always, which asks for a name in each of its spec.resourceSelectors, " +
				"and a spec.priority above 3 instead of 0"},
		"the same priority": {
			[]Policy{policyOf("shop", "a", 3, true, always), policyOf("shop", "b", 3, true, never)}, 1,
			"this one needs a spec.priority above 3 instead of 3",
		},
		"a cluster-wide one has it": {
			[]Policy{policyOf("shop", "a", 0, true, never), policyOf("", "b", 3, true, never)}, 1,
			"this one needs spec.preemption: Always, which asks for a name in each of its spec.resourceSelectors",
		},
		"a namespaced one has it": {
			[]Policy{policyOf("", "a", 9, true, always), policyOf("shop", "b", 3, true, never)}, 1,
			"an object keeps its namespaced policy",
		},
		"it is preempted": {
			[]Policy{policyOf("shop", "a", 0, true, never), policyOf("shop", "b", 3, true, always)}, 0,
			"the larger spec.priority goes first: 3, this one has 0",
		},
		"another one preempts the holder": {
			[]Policy{
				policyOf("shop", "a", 9, true, never), policyOf("shop", "b", 3, true, always),
				policyOf("shop", "c", 1, true, never),
			}, 2, "this one needs spec.preemption: Always",
		},
		"another one preempts before it": {
			[]Policy{
				policyOf("shop", "a", 2, true, always), policyOf("shop", "b", 3, true, always),
				policyOf("shop", "c", 1, true, never),
			}, 2, "the larger spec.priority goes first: 3, this one has 2",
		},
		"it would preempt": {
			[]Policy{policyOf("shop", "a", 2, true, always), policyOf("shop", "b", 1, true, never)}, 1, "",
		},
		"the holder selects it no more": {
			[]Policy{policyOf("shop", "a", 2, true, never), policyOf("other", "b", 3, true, never)}, 1, "",
		},
		"namesakes of another scope differ": {
			[]Policy{policyOf("", "a", 2, true, never), policyOf("shop", "a", 1, true, never)}, -1,
			"a namespaced policy goes before a cluster-wide one",
		},
	}
	object := webDeployment()
	object.SetLabels(map[string]string{"app": "web"})
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var existing bindings.Binding
			if tc.holder >= 0 {
				existing = &workv1alpha2.ResourceBinding{}
				tc.policies[tc.holder].Claim(existing)
			}
			if got := tc.policies[0].WhyNot(tc.policies, object, existing); !strings.Contains(got, tc.want) ||
				(got == "") != (tc.want == "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestClaimReplacesAnEarlierOne(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{}
	first, second := policyOf("", "a", 0, false, ""), policyOf("shop", "b", 0, false, "")
	first.Claim(b)
	second.Claim(b)
	if first.Claims(b) || !second.Claims(b) {
		t.Errorf("got labels %v, annotations %v", b.Labels, b.Annotations)
	}
}

func TestBindingName(t *testing.T) {
	if got := bindings.Name("system:Admin", "ClusterRole"); got != "system.admin-clusterrole" {
		t.Error(got)
	}
}
