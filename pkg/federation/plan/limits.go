package plan

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/budget"
	"github.com/trellis-garden/trellis/pkg/federation/quota"
)

// admit tells whether the FederatedResourceQuotas of the namespace allow a decision.
func (p *predictor) admit(b bindings.Binding, clusters []workv1alpha2.TargetCluster) error {
	var limits []quota.Limit
	for i := range p.Then.Quotas {
		if q := &p.Then.Quotas[i]; q.Namespace == b.GetNamespace() && q.DeletionTimestamp == nil {
			limits = append(limits, quota.Limit{Name: q.Namespace + "/" + q.Name, Hard: q.Spec.Overall})
		}
	}
	if b.GetNamespace() == "" || len(limits) == 0 {
		return nil
	}
	used := map[types.NamespacedName]corev1.ResourceList{}
	for key := range p.keys() {
		if other := p.current(key); other != nil && key.Namespace == b.GetNamespace() {
			used[key] = quota.Usage(other.BindingSpec(), other.BindingSpec().Clusters)
		}
	}
	key := types.NamespacedName{Namespace: b.GetNamespace(), Name: b.GetName()}
	return p.quotas.Admit(limits, used, key, quota.Usage(b.BindingSpec(), clusters), p.At)
}

// removal is a copy of an object that is deleted in a member.
type removal struct{ cluster string }

// removalsOf lists the copies that the deletion budget counts: not those that are kept, nor those whose replicas are
// all placed elsewhere.
func removalsOf(change *ObjectChange, now, then bindings.Binding) []removal {
	if then != nil && bindings.AllPlaced(then.BindingSpec()) {
		return nil
	}
	var result []removal
	for _, c := range change.Clusters {
		if c.Effect == EffectRemoved && now != nil {
			result = append(result, removal{c.Name})
		}
	}
	return result
}

// held tells where the budget would hold what is removed.
func (p *predictor) held(removed []removal) []Held {
	if len(removed) == 0 || p.Budget.Off() {
		return nil
	}
	counts := map[string]budget.Count{}
	for _, r := range removed {
		c := counts[r.cluster]
		c.Pending++
		counts[r.cluster] = c
	}
	copies := map[string]int{}
	for _, b := range p.Bindings {
		for _, target := range bindings.Targets(b.BindingSpec()) {
			copies[target.Name]++
		}
	}
	var result []Held
	fleet := budget.Count{Pending: len(removed)}
	for i := range p.Now.Clusters {
		cluster := &p.Now.Clusters[i]
		c := counts[cluster.Name]
		c.Total, c.Recent = copies[cluster.Name],
			budget.ParseRecent(cluster.Annotations[clusterv1alpha1.DeletionsAnnotation]).Within(p.Budget.Window, p.At)
		fleet.Total, fleet.Recent = fleet.Total+c.Total, fleet.Recent+c.Recent
		if c.Pending > 0 && p.Budget.Decide(c, p.At).Hold {
			result = append(result, Held{
				Cluster: cluster.Name, Deletions: c.Pending, Objects: c.Total, Allowance: p.Budget.Allowance(c),
			})
		}
	}
	if settings := p.Budget.OfFleet(); settings.Decide(fleet, p.At).Hold {
		result = append(result, Held{
			Deletions: fleet.Pending, Objects: fleet.Total, Allowance: settings.Allowance(fleet),
		})
	}
	return result
}
