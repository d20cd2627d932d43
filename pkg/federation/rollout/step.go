package rollout

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/few"
)

// mostNamed is how many clusters a message names that a rollout waits for.
const mostNamed = 5

// step goes on with a rollout that is under way, as far as it may.
func (d *decider) step() {
	s := d.status
	switch s.Phase {
	case workv1alpha2.RolloutCompleted, workv1alpha2.RolloutRolledBack:
		return
	case workv1alpha2.RolloutFailed:
		if !d.resumed() {
			return
		}
		d.clearClocks()
		s.Waves[s.CurrentWave-1].Left = false
	case workv1alpha2.RolloutPaused:
		if s.Reason == workv1alpha2.RolloutReasonWavePause && d.resumed() {
			s.WaveResumed = true
		}
	}
	if reason, message := d.paused(); reason != "" {
		d.pause(reason, message)
		return
	}
	if s.Phase == workv1alpha2.RolloutPaused && s.Reason == workv1alpha2.RolloutReasonWavePause && !s.WaveResumed {
		return
	}
	for d.advance() {
	}
}

func (d *decider) paused() (reason, message string) {
	switch {
	case d.Control != nil && d.Control.Paused:
		return workv1alpha2.RolloutReasonUserPause, "somebody paused the rollout; resume it (trellisctl rollout resume)"
	case d.Plan.paused:
		return workv1alpha2.RolloutReasonPolicyPause, "the policy wants the rollout to be paused: spec.rollout.paused"
	}
	return "", ""
}

// pause stops the clocks. What has ended stays as it is.
func (d *decider) pause(reason, message string) {
	switch d.status.Phase {
	case workv1alpha2.RolloutCompleted, workv1alpha2.RolloutRolledBack, workv1alpha2.RolloutFailed:
		return
	}
	d.stopDeadline()
	d.status.HealthySince = nil
	d.phase(workv1alpha2.RolloutPaused, reason, message)
}

// advance looks at the current wave; it tells whether the next one has come.
func (d *decider) advance() bool {
	s := d.status
	if s.CurrentWave == 0 {
		s.CurrentWave = 1
		return true
	}
	current := int(s.CurrentWave) - 1
	if waiting := d.waitingFor(); len(waiting) > 0 {
		d.wait(current, waiting)
		return false
	}
	if !d.soaked(current) {
		return false
	}
	if d.isLast(current) {
		d.complete(workv1alpha2.RolloutReasonAllWavesDone, d.doneMessage())
		return false
	}
	if d.Plan.waves[current].pause && len(s.Waves[current].Clusters) > 0 && !s.WaveResumed {
		d.stopAfter(current)
		return false
	}
	s.CurrentWave++
	d.clearClocks()
	return true
}

func (d *decider) doneMessage() string {
	away := 0
	for _, c := range d.Clusters {
		if c.Away != "" {
			away++
		}
	}
	if away > 0 {
		return fmt.Sprintf("all clusters have the object as it is, but %d that are not available: they get it when "+
			"they are back", away)
	}
	return "all clusters have the object as it is"
}

// isLast tells whether no cluster is in a later wave.
func (d *decider) isLast(current int) bool {
	for _, later := range d.status.Waves[current+1:] {
		if len(later.Clusters) > 0 {
			return false
		}
	}
	return true
}

func (d *decider) stopAfter(current int) {
	d.status.Stops++
	d.stopDeadline()
	d.phase(workv1alpha2.RolloutPaused, workv1alpha2.RolloutReasonWavePause, fmt.Sprintf(
		"%s is done; the policy wants somebody to resume the rollout now (trellisctl rollout resume)",
		d.nameOf(current)))
}

func (d *decider) nameOf(current int) string {
	return fmt.Sprintf("wave %s (%d of %d)", d.Plan.waves[current].name, current+1, len(d.Plan.waves))
}

// waitingFor lists what keeps the current wave from being done: clusters that have, or are to have, the new revision
// and are not healthy with it. Clusters that are away don't count, unless no other is left in the current wave.
func (d *decider) waitingFor() []string {
	s := d.status
	var waiting, away []string
	present := 0
	comes := reached(s)
	current := s.Waves[s.CurrentWave-1]
	inWave := map[string]bool{}
	for _, name := range current.Clusters {
		inWave[name] = true
	}
	for _, c := range sorted(d.Clusters) {
		switch {
		case !comes.Has(c.Name):
		case c.Away != "":
			if inWave[c.Name] {
				away = append(away, c.Name+": "+c.Away)
			}
		default:
			if inWave[c.Name] {
				present++
			}
			if problem := d.problemOf(c); problem != "" {
				waiting = append(waiting, c.Name+": "+problem)
			}
		}
	}
	if current.Left && len(waiting) == 0 {
		return []string{
			"its clusters, which all lost the object before they were healthy with it; resume to go on without them",
		}
	}
	if present == 0 && len(waiting) == 0 {
		return away
	}
	return waiting
}

// problemOf says why a cluster is not done; empty if it is.
func (d *decider) problemOf(c Cluster) string {
	switch {
	case c.Revision == d.status.UpdateRevision && c.Applied && c.Healthy:
		return ""
	case c.Revision == d.status.UpdateRevision && c.Problem != "":
		return c.Problem
	case c.Revision != d.status.UpdateRevision || !c.Applied:
		return "not applied yet"
	}
	return "not healthy"
}

// wait runs the progress deadline.
func (d *decider) wait(current int, waiting []string) {
	s := d.status
	s.HealthySince = nil
	if s.UnhealthySince == nil {
		s.UnhealthySince = new(metav1.NewTime(d.now))
	}
	left := d.Plan.deadline - time.Duration(s.UnhealthySeconds)*time.Second - d.now.Sub(s.UnhealthySince.Time)
	if left > 0 {
		d.phase(workv1alpha2.RolloutProgressing, workv1alpha2.RolloutReasonWaiting,
			fmt.Sprintf("%s: waiting for %s", d.nameOf(current), few.Joined(waiting, mostNamed, "; ")))
		d.after = left
		return
	}
	d.fail(current, waiting)
}

func (d *decider) fail(current int, waiting []string) {
	s := d.status
	s.Stops++
	d.clearClocks()
	what := fmt.Sprintf("%s was not healthy for more than %s: %s", d.nameOf(current), d.Plan.deadline,
		few.Joined(waiting, mostNamed, "; "))
	if d.Plan.rollback {
		s.CurrentWave = 0
		d.phase(workv1alpha2.RolloutRolledBack, workv1alpha2.RolloutReasonDeadline, fmt.Sprintf(
			"%s; all clusters went back to revision %s; change the object, or resume to try again (trellisctl "+
				"rollout resume)", what, s.StableRevision))
		return
	}
	d.phase(workv1alpha2.RolloutFailed, workv1alpha2.RolloutReasonDeadline,
		what+"; resume to wait longer, or undo (trellisctl rollout)")
}

// soaked runs the time that all clusters have to be healthy.
func (d *decider) soaked(current int) bool {
	s := d.status
	d.stopDeadline()
	if s.HealthySince == nil {
		s.HealthySince = new(metav1.NewTime(d.now))
	}
	if len(s.Waves[current].Clusters) == 0 {
		return true
	}
	left := d.Plan.waves[current].soak - d.now.Sub(s.HealthySince.Time)
	if left <= 0 {
		return true
	}
	d.phase(workv1alpha2.RolloutSoaking, workv1alpha2.RolloutReasonHealthy, fmt.Sprintf(
		"%s: its clusters have to stay healthy until %s", d.nameOf(current),
		d.now.Add(left).UTC().Format(time.RFC3339)))
	d.after = left
	return false
}

// stopDeadline keeps what has run of it.
func (d *decider) stopDeadline() {
	s := d.status
	if s.UnhealthySince != nil {
		s.UnhealthySeconds += int32(max(d.now.Sub(s.UnhealthySince.Time), 0) / time.Second)
		s.UnhealthySince = nil
	}
}

// count fills in the numbers of every wave. Those of ended rollouts are about the revision that the clusters got.
func (d *decider) count() {
	s := d.status
	byName := map[string]Cluster{}
	for _, c := range d.Clusters {
		byName[c.Name] = c
	}
	for i := range s.Waves {
		w := &s.Waves[i]
		w.Updated, w.Healthy, w.Unavailable = 0, 0, 0
		for _, name := range w.Clusters {
			c := byName[name]
			if c.Away != "" {
				w.Unavailable++
			}
			if c.Revision == s.UpdateRevision && c.Applied {
				w.Updated++
				if c.Healthy {
					w.Healthy++
				}
			}
		}
	}
}
