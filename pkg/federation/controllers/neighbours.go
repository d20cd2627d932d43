package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
)

// groupIndex indexes bindings by the groups of workloads that they are in.
const groupIndex = "workloadAffinityGroups"

func indexGroups(object client.Object) []string {
	b, ok := object.(bindings.Binding)
	if !ok || b.BindingSpec().WorkloadAffinityGroups == nil {
		return nil
	}
	var keys []string
	groups := b.BindingSpec().WorkloadAffinityGroups
	if groups.AffinityGroup != "" {
		keys = append(keys, "near/"+groups.AffinityGroup)
	}
	if groups.AntiAffinityGroup != "" {
		keys = append(keys, "apart/"+groups.AntiAffinityGroup)
	}
	return keys
}

// neighbours has decisions on members of groups made one after the other, and remembers those that the cache may not
// show yet.
type neighbours struct {
	mu     sync.Mutex
	recent map[types.NamespacedName]recentDecision
}

type recentDecision struct {
	clusters []workv1alpha2.TargetCluster
	until    time.Time
}

// keepRecent is how long a decision counts beside what the cache shows.
const keepRecent = 5 * time.Second

// decideAmong decides with regard to the other members of the binding's groups, of the same namespace.
func (s *scheduling) decideAmong(ctx context.Context, b bindings.Binding,
	decide func(near, apart []string) (outcome, error)) (outcome, error) {
	groups := b.BindingSpec().WorkloadAffinityGroups
	if groups == nil {
		return decide(nil, nil)
	}
	s.neighbours.mu.Lock()
	defer s.neighbours.mu.Unlock()
	now := s.now()
	maps.DeleteFunc(s.neighbours.recent,
		func(_ types.NamespacedName, d recentDecision) bool { return now.After(d.until) })
	near, err := s.clustersOfGroup(ctx, b, "near/", groups.AffinityGroup)
	if err != nil {
		return outcome{}, err
	}
	apart, err := s.clustersOfGroup(ctx, b, "apart/", groups.AntiAffinityGroup)
	if err != nil {
		return outcome{}, err
	}
	decision, err := decide(near, apart)
	if err != nil {
		return outcome{}, err
	}
	// Until others of the group give their clusters up.
	decision.retry = decision.reason == workv1alpha2.ReasonNoClusterFit
	if s.neighbours.recent == nil {
		s.neighbours.recent = map[types.NamespacedName]recentDecision{}
	}
	s.neighbours.recent[client.ObjectKeyFromObject(b)] = recentDecision{decision.clusters, now.Add(keepRecent)}
	return decision, nil
}

// clustersOfGroup gives the clusters of the other members of a group, sorted.
func (s *scheduling) clustersOfGroup(ctx context.Context, b bindings.Binding, role, group string) ([]string, error) {
	if group == "" {
		return nil, nil
	}
	members, err := bindings.List(ctx, s.client, client.InNamespace(b.GetNamespace()),
		client.MatchingFields{groupIndex: role + group}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("members of group %s: %w", group, err)
	}
	found := map[string]bool{}
	for _, member := range members {
		key := client.ObjectKeyFromObject(member)
		if member.GetNamespace() != b.GetNamespace() || key == client.ObjectKeyFromObject(b) ||
			member.GetDeletionTimestamp() != nil {
			continue
		}
		for _, c := range slices.Concat(member.BindingSpec().Clusters, s.neighbours.recent[key].clusters) {
			found[c.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}
