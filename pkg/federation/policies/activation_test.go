package policies

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
)

func TestActivation(t *testing.T) {
	since := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	template := webDeployment()
	content, err := ContentOf(template)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		lazy bool
		// age of the object beyond that of the policy, if there is no binding.
		older time.Duration
		// recorded content of the binding; "-" for a binding without, "" for none.
		recorded string
		claimed  bool
		want     Activation
	}{
		"not lazy, new":                            {false, time.Hour, "", false, ActivateAll},
		"not lazy, known":                          {false, 0, content, true, ActivateAll},
		"an object that comes after the policy":    {true, -time.Hour, "", false, ActivateAll},
		"an object that comes with the policy":     {true, 0, "", false, ActivateAll},
		"a policy that comes after the object":     {true, time.Hour, "", false, ActivateClaim},
		"the object has not changed":               {true, 0, content, true, ActivateClaim},
		"the object has changed":                   {true, 0, "other", true, ActivateAll},
		"another policy, or it was not lazy":       {true, -time.Hour, "-", true, ActivateClaim},
		"a dependency that comes after the policy": {true, -time.Hour, "-", false, ActivateAll},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			policy := policyOf("shop", "a", 0, true, "")
			policy.SetCreationTimestamp(metav1.NewTime(since))
			if tc.lazy {
				policy.Spec.ActivationPreference = policyv1alpha1.LazyActivation
			}
			template.SetCreationTimestamp(metav1.NewTime(since.Add(-tc.older)))
			var existing bindings.Binding
			if tc.recorded != "" {
				existing = &workv1alpha2.ResourceBinding{}
				if tc.claimed {
					policy.Claim(existing)
				}
				if tc.recorded != "-" {
					bindings.SetAnnotation(existing, ActivatedTemplateAnnotation, tc.recorded)
				}
			}
			if got := ActivationOf(policy, template, existing, content); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestContent(t *testing.T) {
	base := webDeployment()
	before, _ := ContentOf(base)
	same := webDeployment()
	same.SetResourceVersion("7")
	same.SetGeneration(3)
	same.Object["status"] = map[string]any{"readyReplicas": int64(1)}
	if after, _ := ContentOf(same); after != before {
		t.Error("status and versions are no content")
	}
	for name, change := range map[string]func(){
		"labels":      func() { same.SetLabels(map[string]string{"a": "b"}) },
		"annotations": func() { same.SetAnnotations(map[string]string{"a": "b"}) },
		"spec":        func() { same.Object["spec"] = map[string]any{"replicas": int64(2)} },
		"data":        func() { same.Object["data"] = map[string]any{"a": "b"} },
	} {
		same = webDeployment()
		change()
		if after, _ := ContentOf(same); after == before {
			t.Errorf("%s are content", name)
		}
	}
}

func TestAffinityGroups(t *testing.T) {
	term := func(key string) *policyv1alpha1.WorkloadAffinityTerm {
		return &policyv1alpha1.WorkloadAffinityTerm{GroupByLabelKey: key}
	}
	labels := map[string]string{"app": "shop", "tier": "web", "empty": ""}
	tests := map[string]struct {
		affinity *policyv1alpha1.WorkloadAffinity
		want     *workv1alpha2.WorkloadAffinityGroups
	}{
		"none": {nil, nil},
		"both": {
			&policyv1alpha1.WorkloadAffinity{Affinity: term("app"), AntiAffinity: term("tier")},
			&workv1alpha2.WorkloadAffinityGroups{AffinityGroup: "app=shop", AntiAffinityGroup: "tier=web"},
		},
		"one": {
			&policyv1alpha1.WorkloadAffinity{AntiAffinity: term("tier")},
			&workv1alpha2.WorkloadAffinityGroups{AntiAffinityGroup: "tier=web"},
		},
		"no such label":     {&policyv1alpha1.WorkloadAffinity{Affinity: term("team")}, nil},
		"a label of no use": {&policyv1alpha1.WorkloadAffinity{Affinity: term("empty")}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := affinityGroups(tc.affinity, labels)
			if (got == nil) != (tc.want == nil) || got != nil && *got != *tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
