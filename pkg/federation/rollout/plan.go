package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// Values of fields that are absent; API servers fill them in.
const (
	defaultDeadline     = 600 * time.Second
	defaultHistoryLimit = 5
)

// Plan is how a policy wants changes rolled out.
type Plan struct {
	waves    []wave
	hash     string
	deadline time.Duration
	rollback bool
	paused   bool
	keep     int
}

// wave takes clusters that match, at most a number of them.
type wave struct {
	name     string
	affinity core.Affinity
	most     *intstr.IntOrString
	soak     time.Duration
	pause    bool
}

// NewPlan understands what a policy says. Errors name the field that cannot be understood.
func NewPlan(strategy *policyv1alpha1.RolloutStrategy) (*Plan, error) {
	p := &Plan{
		deadline: defaultDeadline, keep: defaultHistoryLimit, paused: strategy.Paused,
		rollback: strategy.OnFailure == policyv1alpha1.RolloutFailureRollback,
	}
	if strategy.ProgressDeadlineSeconds != nil {
		p.deadline = time.Duration(*strategy.ProgressDeadlineSeconds) * time.Second
	}
	if strategy.RevisionHistoryLimit != nil {
		p.keep = int(*strategy.RevisionHistoryLimit)
	}
	for i := range strategy.Waves {
		w, err := newWave(fmt.Sprintf("spec.rollout.waves[%d]", i), &strategy.Waves[i])
		if err != nil {
			return nil, err
		}
		p.waves = append(p.waves, w)
	}
	p.waves = append(p.waves, wave{name: policyv1alpha1.RemainingWave})
	text, err := json.Marshal(strategy.Waves)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	p.hash = hex.EncodeToString(sum[:8])
	return p, nil
}

func newWave(path string, from *policyv1alpha1.RolloutWave) (wave, error) {
	affinity, err := karmada.Affinity(path+".clusterAffinity", from.ClusterAffinity)
	if err != nil {
		return wave{}, err
	}
	if from.MaxClusters != nil {
		if _, err := bound(from.MaxClusters, 1); err != nil {
			return wave{}, fmt.Errorf("%s.maxClusters: %w", path, err)
		}
	}
	return wave{
		name: from.Name, affinity: affinity, most: from.MaxClusters, pause: from.Pause,
		soak: time.Duration(from.SoakSeconds) * time.Second,
	}, nil
}

// bound gives the number of clusters that a bound means among a total; at least 1.
func bound(most *intstr.IntOrString, total int) (int, error) {
	n, err := intstr.GetScaledValueFromIntOrPercent(most, total, true)
	return max(n, 1), err
}
