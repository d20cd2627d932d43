package etcd

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// told is what maintenance tells besides its log. It is read while maintenance goes on.
type told struct {
	now func() time.Time

	mu       sync.Mutex
	space    map[string]status.Space
	skipped  map[string]status.Skip
	readOnly string
}

func newTold() *told {
	return &told{now: time.Now, space: map[string]status.Space{}, skipped: map[string]status.Skip{}}
}

// fills takes how full something is and returns the level before.
func (t *told) fills(space status.Space) (before int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before = t.space[space.Of].Level
	t.space[space.Of] = space
	return before
}

// level is how full something was last.
func (t *told) level(of string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.space[of].Level
}

// skips takes what is skipped and why; with nil, it is not skipped any more.
func (t *told) skips(what string, why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.skipped, what); why != nil {
		t.skipped[what] = status.Skip{What: what, Since: t.now().UTC(), Message: status.Text(why.Error())}
	}
}

// writes takes why writes are not served; empty if they are.
func (t *told) writes(refused string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readOnly = status.Text(refused)
}

// addTo adds what was told, in an order that does not change.
func (t *told) addTo(s *status.Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, of := range slices.Sorted(maps.Keys(t.space)) {
		s.Space = append(s.Space, t.space[of])
	}
	for _, what := range slices.Sorted(maps.Keys(t.skipped)) {
		s.Skipped = append(s.Skipped, t.skipped[what])
	}
	s.ReadOnly = t.readOnly
}

// status is what is told to whoever asks.
func (s *Steward) status() status.Status {
	told := status.Status{Time: time.Now().UTC()}
	told.Phase, told.PhaseSince = s.health.current()
	told.Leads = told.Phase == status.Serving && s.leads()
	told.Recovering, told.Recoveries = s.recoveries.told()
	told.Differs = s.recoveries.difference()
	s.told.addTo(&told)
	told.Certificates = s.certificates.told()
	if s.backups != nil {
		told.Store = s.backups.notices.store()
	}
	return told
}
