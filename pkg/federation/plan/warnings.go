package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/apps/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/rollout"
	"github.com/trellis-garden/trellis/pkg/federation/selector"
)

// warnings tell what the documents say without effect. What they would delete is not of interest any more.
func (p *predictor) warnings() []Warning {
	var result []Warning
	for _, d := range p.Documents {
		if d.Action == ActionDelete {
			continue
		}
		for _, message := range p.warningsOf(d) {
			result = append(result, Warning{Document: d.String(), Message: message})
		}
	}
	return result
}

func (p *predictor) warningsOf(d Document) []string {
	var messages []string
	for _, policy := range p.Then.Policies {
		if d.isOf(policy) {
			messages = append(messages, selector.Unserved(policy.Spec.ResourceSelectors, p.Serves)...)
			messages = append(messages, rollout.Problems(policy.Spec.Rollout, p.snapshot)...)
		}
	}
	for _, policy := range p.Then.Overrides {
		if d.group() == policyv1alpha1.GroupVersion.Group && d.String() == policy.String() {
			messages = append(messages, selector.Unserved(policy.Spec.ResourceSelectors, p.Serves)...)
			messages = append(messages, policy.UnknownClusters(p.snapshot)...)
		}
	}
	for i := range p.Rebalancers {
		if r := &p.Rebalancers[i]; d.group() == appsv1alpha1.GroupVersion.Group && d.Name == r.Name {
			messages = append(messages, p.missingWorkloads(r)...)
		}
	}
	return messages
}

// missingWorkloads are those that a rebalancer would give up at once.
func (p *predictor) missingWorkloads(r *appsv1alpha1.WorkloadRebalancer) []string {
	var messages []string
	for i, w := range r.Spec.Workloads {
		key := workloadKey(w)
		problem := ""
		there := slices.ContainsFunc(p.Objects, func(o Object) bool {
			return isThere(o.Then) && bindings.TemplateKeyOf(o.Then, o.Then.GroupVersionKind()) == key
		})
		switch b := p.current(types.NamespacedName{Namespace: w.Namespace, Name: bindings.Name(w.Name, w.Kind)}); {
		case !p.Serves(key.GroupVersionKind):
			problem = fmt.Sprintf("the fleet serves no kind %s in %s", w.Kind, w.APIVersion)
		case !there:
			problem = fmt.Sprintf("the fleet has no %s", key)
		case b == nil || !bindings.IsFor(b, key):
			problem = fmt.Sprintf("%s is not propagated", key)
		default:
			continue
		}
		messages =
			append(messages, fmt.Sprintf("spec.workloads[%d]: %s; its result would be %s, and stay so if that "+
				"changes later",
				i, problem, appsv1alpha1.RebalanceFailed))
	}
	return messages
}
