package rollout

import (
	"errors"
	"fmt"
	"strconv"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// errNoRollout is what to do about an object without a staged rollout.
var errNoRollout = errors.New("the object has no staged rollout: its policy has no spec.rollout, or nothing was " +
	"decided yet")

// Pause gives what people have to ask for so that no further wave comes. Nothing that is given is changed.
func Pause(control *workv1alpha2.RolloutControl,
	status *workv1alpha2.RolloutStatus) (*workv1alpha2.RolloutControl, error) {
	if status == nil {
		return nil, errNoRollout
	}
	wanted := copyOf(control)
	if wanted.Paused {
		return nil, errors.New("it is paused already")
	}
	wanted.Paused = true
	return wanted, nil
}

// Resume gives what people have to ask for so that a rollout goes on, whatever it was stopped by.
func Resume(control *workv1alpha2.RolloutControl,
	status *workv1alpha2.RolloutStatus) (*workv1alpha2.RolloutControl, error) {
	if status == nil {
		return nil, errNoRollout
	}
	wanted := copyOf(control)
	wanted.Paused = false
	stopped := status.Reason == workv1alpha2.RolloutReasonWavePause ||
		status.Reason == workv1alpha2.RolloutReasonDeadline
	switch {
	case wanted.Undo != nil && wanted.Undo.Number == status.Number:
		wanted.Undo = nil
	case stopped:
		wanted.Resumed = &workv1alpha2.RolloutResumption{Number: status.Number, Stop: status.Stops}
	case control != nil && control.Paused:
	case status.Reason == workv1alpha2.RolloutReasonPolicyPause:
		return nil, errors.New("its policy wants it to be paused: set spec.rollout.paused there to false")
	case status.Reason == workv1alpha2.RolloutReasonInvalidPlan:
		return nil, fmt.Errorf("its policy cannot be understood: %s", status.Message)
	default:
		return nil, fmt.Errorf("nothing stops it: it is %s; %s", status.Phase, status.Message)
	}
	return wanted, nil
}

// Undo gives what people have to ask for so that all clusters get another revision: by default the one that was
// complete before. One can be named by its number or name.
func Undo(control *workv1alpha2.RolloutControl, status *workv1alpha2.RolloutStatus,
	to string) (*workv1alpha2.RolloutControl, error) {
	if status == nil {
		return nil, errNoRollout
	}
	revision, err := undoTarget(status, to)
	if err != nil {
		return nil, err
	}
	wanted := copyOf(control)
	wanted.Undo = &workv1alpha2.RolloutUndo{Number: status.Number, Revision: revision}
	return wanted, nil
}

func undoTarget(status *workv1alpha2.RolloutStatus, to string) (string, error) {
	if to != "" {
		return namedTarget(status, to)
	}
	switch {
	case status.Phase == workv1alpha2.RolloutRolledBack:
		return "", fmt.Errorf("all clusters went back to revision %s already; name another one with --to-revision",
			status.StableRevision)
	case status.StableRevision != status.UpdateRevision:
		return status.StableRevision, nil
	}
	for i := len(status.Revisions) - 1; i >= 0; i-- {
		if r := status.Revisions[i].Revision; r != status.UpdateRevision {
			return r, nil
		}
	}
	return "", errors.New("no earlier revision is kept: there was none yet, or spec.rollout.revisionHistoryLimit of " +
		"the policy is 0")
}

func namedTarget(status *workv1alpha2.RolloutStatus, to string) (string, error) {
	for _, r := range status.Revisions {
		if r.Revision != to && strconv.FormatInt(r.Number, 10) != to {
			continue
		}
		if r.Revision == status.UpdateRevision {
			return "", fmt.Errorf("revision %s is that of the object itself: resume the rollout to bring it to all "+
				"clusters", to)
		}
		return r.Revision, nil
	}
	return "", fmt.Errorf("no revision %s is kept; trellisctl rollout history lists them", to)
}

// SeenGeneration is the newest generation of the object that its rollout is about.
func SeenGeneration(status *workv1alpha2.RolloutStatus) int64 {
	for _, r := range status.Revisions {
		if r.Revision == status.UpdateRevision {
			return r.TemplateGeneration
		}
	}
	return 0
}

// Pending names what people ask of a rollout that its status doesn't know of yet; empty for nothing.
func Pending(control *workv1alpha2.RolloutControl, status *workv1alpha2.RolloutStatus) string {
	d := &decider{Input: Input{Control: copyOf(control)}, status: status}
	undo := d.undo()
	switch status.Phase {
	case workv1alpha2.RolloutCompleted:
		if undo != "" {
			return "undo"
		}
	case workv1alpha2.RolloutRolledBack:
		switch {
		case undo != "" && undo != status.StableRevision:
			return "undo"
		case undo == "" && (status.Reason == workv1alpha2.RolloutReasonUndone || d.resumed()):
			return "resume"
		}
	default:
		return d.pendingOnTheWay(undo)
	}
	return ""
}

func (d *decider) pendingOnTheWay(undo string) string {
	byUser := d.status.Reason == workv1alpha2.RolloutReasonUserPause
	byItself := d.status.Reason == workv1alpha2.RolloutReasonWavePause || d.status.Phase == workv1alpha2.RolloutFailed
	switch {
	case undo != "":
		return "undo"
	case d.Control.Paused:
		if d.status.Phase != workv1alpha2.RolloutPaused && d.status.Phase != workv1alpha2.RolloutFailed {
			return "pause"
		}
	case byUser, byItself && d.resumed():
		return "resume"
	}
	return ""
}

func copyOf(control *workv1alpha2.RolloutControl) *workv1alpha2.RolloutControl {
	if control == nil {
		return &workv1alpha2.RolloutControl{}
	}
	return control.DeepCopy()
}
