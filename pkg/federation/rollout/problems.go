package rollout

import (
	"fmt"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// Problems tells what the waves of a strategy, if there is one, say without effect in a fleet: names that no cluster
// has, or only such as an earlier wave takes, and waves after one that takes all. Waves that merely match clusters of
// earlier ones are no problem: a wave for a region may follow one for a canary in it.
func Problems(strategy *policyv1alpha1.RolloutStrategy, fleet core.Snapshot) []string {
	if strategy == nil {
		return nil
	}
	p, err := NewPlan(strategy)
	if err != nil {
		return nil // The API refuses it, and rollouts say so.
	}
	clusters := map[string]*core.Cluster{}
	for _, c := range fleet.Clusters() {
		clusters[c.Name] = &c
	}
	var problems []string
	for i := range p.waves {
		w, earlier := &p.waves[i], p.waves[:i]
		for _, unknown := range w.affinity.Unknown(fleet) {
			problems = append(problems, unknown.Message)
		}
		if all := firstThat(earlier, (*wave).takesAll); all != nil && w.name != policyv1alpha1.RemainingWave {
			problems =
				append(problems, fmt.Sprintf("spec.rollout.waves[%d]: no cluster is left for it: wave %s before it "+
					"takes all", i, all.name))
			continue
		}
		problems = append(problems, w.comesTooLate(earlier, clusters)...)
	}
	return problems
}

// comesTooLate tells of the clusters that the wave names and an earlier one takes in any case.
func (w *wave) comesTooLate(earlier []wave, clusters map[string]*core.Cluster) []string {
	var problems []string
	for i, name := range w.affinity.Names {
		if clusters[name] == nil {
			continue
		}
		takes := func(e *wave) bool { return e.most == nil && e.affinity.Matches(clusters[name]) }
		if first := firstThat(earlier, takes); first != nil {
			problems =
				append(problems, fmt.Sprintf("%s.clusterNames[%d]: wave %s before it takes cluster %s; it gets "+
					"changes with that one",
					w.affinity.Path, i, first.name, name))
		}
	}
	return problems
}

func firstThat(waves []wave, holds func(*wave) bool) *wave {
	for i := range waves {
		if holds(&waves[i]) {
			return &waves[i]
		}
	}
	return nil
}

// takesAll: what is left then is for no wave.
func (w *wave) takesAll() bool { return w.most == nil && w.affinity.MatchesAll() }
