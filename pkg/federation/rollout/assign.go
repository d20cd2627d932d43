package rollout

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// assign divides the clusters among the waves. Those whose wave has come stay in it, or belong to the first one if the
// plan is another than before, so that nothing that was updated goes back. A pause after one of the old waves is over
// then. All others are divided anew: when the clusters of a wave leave, others take their places.
func (p *Plan) assign(s *workv1alpha2.RolloutStatus, clusters []Cluster) {
	kept := p.keptWaves(s)
	if s.PlanHash != p.hash && s.PlanHash != "" && s.CurrentWave > 0 {
		s.CurrentWave, s.WaveResumed, s.HealthySince = 1, false, nil
		if s.Reason == workv1alpha2.RolloutReasonWavePause {
			s.Phase, s.Reason = workv1alpha2.RolloutProgressing, workv1alpha2.RolloutReasonWaiting
		}
	}
	names := make([][]string, len(p.waves))
	var free []Cluster
	for _, c := range clusters {
		if w, found := kept[c.Name]; found {
			names[w] = append(names[w], c.Name)
		} else {
			free = append(free, c)
		}
	}
	slices.SortFunc(free, byName)
	for _, c := range free {
		w := p.waveFor(c, names, len(clusters))
		names[w] = append(names[w], c.Name)
	}
	waves := make([]workv1alpha2.RolloutWaveStatus, len(p.waves))
	for i := range waves {
		slices.Sort(names[i])
		waves[i] = workv1alpha2.RolloutWaveStatus{Name: p.waves[i].name, Clusters: names[i]}
	}
	if current := int(s.CurrentWave) - 1; current >= 0 && current < len(s.Waves) && s.PlanHash == p.hash {
		before := s.Waves[current]
		waves[current].Left = len(names[current]) == 0 && (before.Left || len(before.Clusters) > 0)
	}
	s.Waves, s.PlanHash = waves, p.hash
}

// keptWaves gives the wave of each cluster that keeps it.
func (p *Plan) keptWaves(s *workv1alpha2.RolloutStatus) map[string]int {
	kept := map[string]int{}
	for i := range min(int(s.CurrentWave), len(s.Waves)) {
		for _, name := range s.Waves[i].Clusters {
			if s.PlanHash == p.hash && i < len(p.waves) {
				kept[name] = i
			} else {
				kept[name] = 0
			}
		}
	}
	return kept
}

// waveFor gives the first wave that takes a cluster and is not full.
func (p *Plan) waveFor(c Cluster, taken [][]string, total int) int {
	for i, w := range p.waves {
		if !w.affinity.Matches(&c.Cluster) {
			continue
		}
		if w.most == nil {
			return i
		}
		if most, err := bound(w.most, total); err == nil && len(taken[i]) < most {
			return i
		}
	}
	return len(p.waves) - 1
}

// reached are the clusters whose wave has come.
func reached(s *workv1alpha2.RolloutStatus) sets.Set[string] {
	result := sets.Set[string]{}
	for i := range min(int(s.CurrentWave), len(s.Waves)) {
		result.Insert(s.Waves[i].Clusters...)
	}
	return result
}
