package rollout

import (
	"reflect"
	"strings"
	"testing"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

func TestResume(t *testing.T) {
	type (
		control = workv1alpha2.RolloutControl
		status  = workv1alpha2.RolloutStatus
	)
	resumption := &workv1alpha2.RolloutResumption{Number: 3, Stop: 2}
	undo := &workv1alpha2.RolloutUndo{Number: 3, Revision: "a"}
	tests := map[string]struct {
		control *control
		status  *status
		want    *control
		message string
	}{
		"no rollout": {nil, nil, nil, "no spec.rollout"},
		"a user's pause": {
			&control{Paused: true}, &status{Phase: "Paused", Reason: workv1alpha2.RolloutReasonUserPause}, &control{},
			"",
		},
		"a pause that no status tells yet": {
			&control{Paused: true}, &status{Phase: "Completed", Reason: workv1alpha2.RolloutReasonAllWavesDone},
			&control{}, "",
		},
		"after a wave": {
			nil, &status{Number: 3, Stops: 2, Phase: "Paused", Reason: workv1alpha2.RolloutReasonWavePause},
			&control{Resumed: resumption}, "",
		},
		"after a failure": {
			&control{Paused: true}, &status{
				Number: 3, Stops: 2, Phase: "Failed", Reason: workv1alpha2.RolloutReasonDeadline,
			}, &control{
				Resumed: resumption,
			}, "",
		},
		"after undo": {
			&control{Undo: undo}, &status{Number: 3, Phase: "RolledBack", Reason: workv1alpha2.RolloutReasonUndone},
			&control{}, "",
		},
		"the policy's pause": {
			nil, &status{Phase: "Paused", Reason: workv1alpha2.RolloutReasonPolicyPause}, nil, "spec.rollout.paused",
		},
		"a bad policy": {
			nil, &status{Phase: "Paused", Reason: workv1alpha2.RolloutReasonInvalidPlan, Message: "waves[1]"}, nil,
			"waves[1]",
		},
		"under way": {
			nil, &status{Phase: "Progressing", Message: "waiting for a"}, nil,
			"nothing stops it: it is Progressing; waiting for a",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Resume(tc.control, tc.status)
			compare(t, got, err, tc.want, tc.message)
		})
	}
}

func compare(t *testing.T, got *workv1alpha2.RolloutControl, err error, want *workv1alpha2.RolloutControl,
	message string) {
	t.Helper()
	if message != "" && (err == nil || !strings.Contains(err.Error(), message)) || message == "" && err != nil {
		t.Errorf("error %v, want %q", err, message)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestPause(t *testing.T) {
	status := &workv1alpha2.RolloutStatus{}
	got, err := Pause(nil, status)
	compare(t, got, err, &workv1alpha2.RolloutControl{Paused: true}, "")
	got, err = Pause(got, status)
	compare(t, got, err, nil, "already")
	got, err = Pause(nil, nil)
	compare(t, got, err, nil, "no spec.rollout")
}

func TestUndoTarget(t *testing.T) {
	revisions := []workv1alpha2.RolloutRevision{
		{Revision: "a", Number: 1}, {Revision: "b", Number: 4}, {Revision: "c", Number: 5},
	}
	under := &workv1alpha2.RolloutStatus{
		Number: 5, Phase: "Failed", StableRevision: "a", UpdateRevision: "c", Revisions: revisions,
	}
	completed := &workv1alpha2.RolloutStatus{
		Number: 5, Phase: "Completed", StableRevision: "c", UpdateRevision: "c", Revisions: revisions,
	}
	back := &workv1alpha2.RolloutStatus{
		Number: 5, Phase: "RolledBack", StableRevision: "a", UpdateRevision: "c", Revisions: revisions,
	}
	tests := map[string]struct {
		status            *workv1alpha2.RolloutStatus
		to, want, message string
	}{
		"under way":          {under, "", "a", ""},
		"by name":            {under, "b", "b", ""},
		"by number":          {completed, "1", "a", ""},
		"completed":          {completed, "", "b", ""},
		"back already":       {back, "", "", "went back to revision a already"},
		"further back":       {back, "4", "b", ""},
		"unknown":            {completed, "9", "", "no revision 9 is kept"},
		"that of the object": {under, "c", "", "resume the rollout"},
		"nothing to go to": {
			&workv1alpha2.RolloutStatus{StableRevision: "c", UpdateRevision: "c", Revisions: revisions[2:]}, "", "",
			"no earlier revision is kept",
		},
		"without any rollout": {nil, "", "", "no spec.rollout"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Undo(&workv1alpha2.RolloutControl{Paused: true}, tc.status, tc.to)
			var want *workv1alpha2.RolloutControl
			if tc.want != "" {
				want = &workv1alpha2.RolloutControl{
					Paused: true, Undo: &workv1alpha2.RolloutUndo{Number: 5, Revision: tc.want},
				}
			}
			compare(t, got, err, want, tc.message)
		})
	}
}

func TestPending(t *testing.T) {
	revisions := []workv1alpha2.RolloutRevision{
		{Revision: "a", Number: 1}, {Revision: "b", Number: 4}, {Revision: "c", Number: 5},
	}
	status := func(phase workv1alpha2.RolloutPhase, reason string) *workv1alpha2.RolloutStatus {
		return &workv1alpha2.RolloutStatus{
			Number: 5, Phase: phase, Reason: reason, StableRevision: "a", UpdateRevision: "c", Revisions: revisions,
			Stops: 2,
		}
	}
	resumed := &workv1alpha2.RolloutControl{Resumed: &workv1alpha2.RolloutResumption{Number: 5, Stop: 2}}
	undo := func(number int64, revision string) *workv1alpha2.RolloutControl {
		return &workv1alpha2.RolloutControl{Undo: &workv1alpha2.RolloutUndo{Number: number, Revision: revision}}
	}
	paused := &workv1alpha2.RolloutControl{Paused: true}
	tests := map[string]struct {
		control *workv1alpha2.RolloutControl
		status  *workv1alpha2.RolloutStatus
		want    string
	}{
		"nothing": {
			nil, status(workv1alpha2.RolloutSoaking, workv1alpha2.RolloutReasonHealthy), "",
		},
		"pause": {
			paused, status(workv1alpha2.RolloutSoaking, workv1alpha2.RolloutReasonHealthy), "pause",
		},
		"paused": {
			paused, status(workv1alpha2.RolloutPaused, workv1alpha2.RolloutReasonUserPause), "",
		},
		"pause of what is done": {
			paused, status(workv1alpha2.RolloutCompleted, workv1alpha2.RolloutReasonAllWavesDone), "",
		},
		"end of a pause": {
			nil, status(workv1alpha2.RolloutPaused, workv1alpha2.RolloutReasonUserPause), "resume",
		},
		"resume after a wave": {
			resumed, status(workv1alpha2.RolloutPaused, workv1alpha2.RolloutReasonWavePause), "resume",
		},
		"waits after a wave": {
			nil, status(workv1alpha2.RolloutPaused, workv1alpha2.RolloutReasonWavePause), "",
		},
		"resume after a failure": {
			resumed, status(workv1alpha2.RolloutFailed, workv1alpha2.RolloutReasonDeadline), "resume",
		},
		"resume after a rollback": {
			resumed, status(workv1alpha2.RolloutRolledBack, workv1alpha2.RolloutReasonDeadline), "resume",
		},
		"resume after an undo": {
			nil, status(workv1alpha2.RolloutRolledBack, workv1alpha2.RolloutReasonUndone), "resume",
		},
		"undo": {
			undo(5, "a"), status(workv1alpha2.RolloutCompleted, workv1alpha2.RolloutReasonAllWavesDone), "undo",
		},
		"undo in the middle": {
			undo(5, "a"), status(workv1alpha2.RolloutPaused, workv1alpha2.RolloutReasonWavePause), "undo",
		},
		"undone": {
			undo(5, "a"), status(workv1alpha2.RolloutRolledBack, workv1alpha2.RolloutReasonUndone), "",
		},
		"undo further": {
			undo(5, "b"), status(workv1alpha2.RolloutRolledBack, workv1alpha2.RolloutReasonUndone), "undo",
		},
		"undo of a rollout before": {
			undo(4, "a"), status(workv1alpha2.RolloutCompleted, workv1alpha2.RolloutReasonAllWavesDone), "",
		},
		"undo to what is kept no more": {
			undo(5, "x"), status(workv1alpha2.RolloutCompleted, workv1alpha2.RolloutReasonAllWavesDone), "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Pending(tc.control, tc.status); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
