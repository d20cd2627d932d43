package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// Cluster is a cluster that is to have the object, with what is known of it.
type Cluster struct {
	core.Cluster
	// Revision that it was given last; empty if none.
	Revision string
	// Applied tells that it has that revision, and that what is known of its health is about it.
	Applied bool
	// Healthy tells that the object is healthy there, or that nothing is known about the health of such objects.
	Healthy bool
	// Problem says what is wrong if the object isn't applied or healthy; it may be empty.
	Problem string
	// Away says why the cluster is not to be waited for; empty if it is.
	Away string
}

func byName(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) }

// Input of a decision.
type Input struct {
	// Plan of the policy; nil if it cannot be understood, which PlanError explains.
	Plan      *Plan
	PlanError error
	// Control is what people ask for; nil for nothing.
	Control *workv1alpha2.RolloutControl
	// Previous is what the status says; nil for an object that has no rollout yet.
	Previous *workv1alpha2.RolloutStatus
	// Template is the revision of the object, and TemplateGeneration the object's generation.
	Template           string
	TemplateGeneration int64
	// Clusters that are to have the object, in any order.
	Clusters []Cluster
	Now      time.Time
}

// Decision is what follows.
type Decision struct {
	// Status to be written. Revisions of clusters follow from it alone.
	Status *workv1alpha2.RolloutStatus
	// After is when to decide again if nothing happens; 0 for never.
	After time.Duration
}

// Decide does the next step. Times are counted in whole seconds, as statuses hold them.
func Decide(in Input) Decision {
	d := &decider{Input: in, now: in.Now.Truncate(time.Second)}
	d.status = in.Previous.DeepCopy()
	if d.status == nil {
		d.status = &workv1alpha2.RolloutStatus{}
		d.adopt()
	}
	d.follow()
	d.remember()
	if d.Plan == nil {
		d.pause(workv1alpha2.RolloutReasonInvalidPlan, fmt.Sprintf("correct the policy: %v", d.PlanError))
	} else {
		d.Plan.assign(d.status, in.Clusters)
		d.step()
		d.forget()
	}
	d.count()
	return Decision{Status: d.status, After: d.after}
}

type decider struct {
	Input
	now    time.Time
	status *workv1alpha2.RolloutStatus
	after  time.Duration
}

// adopt begins with what the object is now: it is what all clusters have, or get at once.
func (d *decider) adopt() {
	s := d.status
	s.Number, s.StableRevision, s.UpdateRevision = 1, d.Template, d.Template
	d.phase(workv1alpha2.RolloutCompleted, workv1alpha2.RolloutReasonInitial,
		"the first revision went to all clusters at once")
}

// follow takes up what was changed by people: the object, or their mind about it.
func (d *decider) follow() {
	s := d.status
	undo := d.undo()
	switch {
	case s.UpdateRevision != d.Template && s.StableRevision == d.Template:
		d.begin()
		d.complete(workv1alpha2.RolloutReasonReverted,
			"the object has again the content that was complete before; all clusters got it at once")
	case s.UpdateRevision != d.Template:
		d.begin()
	case undo != "":
		s.StableRevision, s.CurrentWave = undo, 0
		d.clearClocks()
		d.phase(workv1alpha2.RolloutRolledBack, workv1alpha2.RolloutReasonUndone,
			fmt.Sprintf("somebody went back to revision %s; change the object, or resume to roll its content out again",
				undo))
	case s.Phase == workv1alpha2.RolloutRolledBack && (s.Reason == workv1alpha2.RolloutReasonUndone || d.resumed()):
		d.begin()
	}
}

// undo gives the revision that somebody wants instead of what this rollout brings; empty for none.
func (d *decider) undo() string {
	if d.Control == nil || d.Control.Undo == nil || d.Control.Undo.Number != d.status.Number {
		return ""
	}
	wanted := d.Control.Undo.Revision
	for _, r := range d.status.Revisions {
		if r.Revision == wanted && wanted != d.status.UpdateRevision {
			return wanted
		}
	}
	return ""
}

// resumed tells whether somebody ended the last stop of this rollout.
func (d *decider) resumed() bool {
	return d.Control != nil && d.Control.Resumed != nil && d.Control.Resumed.Number == d.status.Number &&
		d.Control.Resumed.Stop >= d.status.Stops
}

// begin starts a rollout of the object as it is, before the first wave.
func (d *decider) begin() {
	s := d.status
	s.Number++
	s.UpdateRevision, s.CurrentWave, s.Stops = d.Template, 0, 0
	s.Waves, s.PlanHash = nil, ""
	d.clearClocks()
	d.phase(workv1alpha2.RolloutProgressing, workv1alpha2.RolloutReasonWaiting, "")
}

func (d *decider) clearClocks() {
	d.status.WaveResumed, d.status.HealthySince, d.status.UnhealthySeconds, d.status.UnhealthySince = false, nil, 0, nil
}

func (d *decider) complete(reason, message string) {
	d.status.StableRevision, d.status.CurrentWave = d.status.UpdateRevision, 0
	d.clearClocks()
	d.phase(workv1alpha2.RolloutCompleted, reason, message)
}

// phase sets the phase; the time is that of the last change of phase or reason.
func (d *decider) phase(phase workv1alpha2.RolloutPhase, reason, message string) {
	s := d.status
	if s.Phase != phase || s.Reason != reason {
		s.Since = metav1.NewTime(d.now)
	}
	s.Phase, s.Reason, s.Message = phase, reason, message
}

// remember notes the revision of the object as one that can be gone back to.
func (d *decider) remember() {
	s := d.status
	i := slices.IndexFunc(s.Revisions,
		func(r workv1alpha2.RolloutRevision) bool { return r.Revision == s.UpdateRevision })
	entry := workv1alpha2.RolloutRevision{Revision: s.UpdateRevision, Number: s.Number, Time: metav1.NewTime(d.now)}
	if i >= 0 {
		if s.Revisions[i].Number == s.Number {
			entry.Time = s.Revisions[i].Time
		}
		s.Revisions = slices.Delete(s.Revisions, i, i+1)
	}
	entry.TemplateGeneration = d.TemplateGeneration
	s.Revisions = append(s.Revisions, entry)
}

// forget drops the oldest revisions that are not in use.
func (d *decider) forget() {
	s := d.status
	spare := 0
	for i := len(s.Revisions) - 1; i >= 0; i-- {
		if r := s.Revisions[i].Revision; r == s.StableRevision || r == s.UpdateRevision {
			continue
		}
		if spare++; spare > d.Plan.keep {
			s.Revisions = slices.Delete(s.Revisions, i, i+1)
		}
	}
}

// RevisionFor gives the revision that a cluster gets.
func RevisionFor(s *workv1alpha2.RolloutStatus, cluster string) string {
	for i := range min(int(s.CurrentWave), len(s.Waves)) {
		if _, found := slices.BinarySearch(s.Waves[i].Clusters, cluster); found {
			return s.UpdateRevision
		}
	}
	return s.StableRevision
}

// SameRevisions tells whether clusters get the same by both statuses, and the same revisions are to be kept. Either may
// be nil.
func SameRevisions(a, b *workv1alpha2.RolloutStatus) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Number != b.Number || a.StableRevision != b.StableRevision || a.UpdateRevision != b.UpdateRevision ||
		!reached(a).Equal(reached(b)) {
		return false
	}
	return slices.EqualFunc(a.Revisions, b.Revisions,
		func(x, y workv1alpha2.RolloutRevision) bool { return x.Revision == y.Revision })
}

func sorted(clusters []Cluster) []Cluster {
	return slices.SortedFunc(slices.Values(clusters), byName)
}
