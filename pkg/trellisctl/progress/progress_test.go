package progress

import (
	"os"
	"strings"
	"testing"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

var began = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// shoot is one of generation 3 in seed local, whose gardenlet has seen a generation and is at an operation.
func shoot(observed int64, state gardencorev1beta1.LastOperationState, percent int32,
	description string) *gardencorev1beta1.Shoot {
	s := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "one", UID: "u1", Generation: 3},
	}
	s.Spec.SeedName = new("local")
	s.Status.ObservedGeneration = observed
	s.Status.LastOperation = &gardencorev1beta1.LastOperation{
		Type: gardencorev1beta1.LastOperationTypeReconcile, State: state, Progress: percent, Description: description,
	}
	return s
}

func goal() Goal {
	return Goal{
		Key: types.NamespacedName{Namespace: "garden-demo", Name: "one"}, Command: "one --project demo",
		UID: "u1", Generation: 3,
	}
}

func TestLook(t *testing.T) {
	const (
		processing = gardencorev1beta1.LastOperationStateProcessing
		succeeded  = gardencorev1beta1.LastOperationStateSucceeded
		failed     = gardencorev1beta1.LastOperationStateFailed
	)
	with := func(s *gardencorev1beta1.Shoot, change func(*gardencorev1beta1.Shoot)) *gardencorev1beta1.Shoot {
		change(s)
		return s
	}
	rotating, deleting, sleeping, another := goal(), goal(), goal(), goal()
	rotating.Operations = []string{gardencorev1beta1.OperationRotateCAStart}
	deleting.Gone = true
	sleeping.Reached = func(s *gardencorev1beta1.Shoot) bool { return s.Status.IsHibernated }
	another.UID = "u0"
	asked := func(s *gardencorev1beta1.Shoot) {
		s.Annotations = map[string]string{
			gardencorev1beta1.GardenerOperation: "rotate-ssh-keypair;" + gardencorev1beta1.OperationRotateCAStart,
		}
	}
	for name, test := range map[string]struct {
		goal  Goal
		shoot *gardencorev1beta1.Shoot
		// want is "head: detail", with "done" or a part of the error behind it when the wait has ended.
		want string
	}{
		"under way": {goal(), shoot(3, processing, 45, "Deploying etcd\n"), "Reconcile 45%: Deploying etcd"},
		"done":      {goal(), shoot(3, succeeded, 100, "Good."), "Reconcile 100%: Succeeded: Good. done"},
		"tried again": {
			goal(), shoot(3, gardencorev1beta1.LastOperationStateError, 45, "No quota."),
			"Reconcile 45%: Error: No quota.",
		},
		"an earlier success does not count": {
			goal(), shoot(2, succeeded, 100, "Good."), "Waiting: for the gardenlet of seed local",
		},
		"nor an earlier failure": {
			goal(), shoot(2, failed, 45, "Bad."), "Waiting: for the gardenlet of seed local",
		},
		"a later success does": {
			goal(), with(shoot(4, succeeded, 100, "Good."), func(s *gardencorev1beta1.Shoot) { s.Generation = 5 }),
			"Reconcile 100%: Succeeded: Good. done",
		},
		"no seed yet": {
			goal(), with(shoot(0, gardencorev1beta1.LastOperationStatePending, 0, "no seed has room"),
				func(s *gardencorev1beta1.Shoot) { s.Spec.SeedName = nil }), "Waiting: for a seed: no seed has room",
		},
		"nothing known": {
			goal(), with(shoot(0, "", 0, ""), func(s *gardencorev1beta1.Shoot) {
				s.Spec.SeedName, s.Status.LastOperation = nil, nil
			}), "Waiting: for a seed",
		},
		"left alone": {
			goal(), with(shoot(2, succeeded, 100, ""), func(s *gardencorev1beta1.Shoot) {
				s.Annotations = map[string]string{gardencorev1beta1.ShootIgnore: "true"}
			}), "Waiting: the shoot is left alone until annotation shoot.gardener.cloud/ignore is removed",
		},
		"an operation that was not taken up": {
			rotating, with(shoot(3, succeeded, 100, "Good."), asked), "Waiting: for rotate-ca-start to begin",
		},
		"an operation behind another": {
			rotating, with(shoot(3, processing, 20, "Deploying etcd"), asked),
			"Waiting: rotate-ca-start follows; now: Deploying etcd",
		},
		"what an operation has changed is waited for": {
			rotating, with(shoot(3, succeeded, 100, ""), func(s *gardencorev1beta1.Shoot) { s.Generation = 4 }),
			"Waiting: for the gardenlet of seed local",
		},
		"an operation that is done": {rotating, shoot(3, succeeded, 100, ""), "Reconcile 100%: Succeeded done"},
		"awake still":               {sleeping, shoot(3, succeeded, 100, ""), "Reconcile 100%: Succeeded"},
		"asleep": {
			sleeping, with(shoot(3, succeeded, 100, ""), func(s *gardencorev1beta1.Shoot) {
				s.Status.IsHibernated = true
			}), "Reconcile 100%: Succeeded done",
		},
		"gone, as it should be":       {deleting, nil, "Gone: the shoot does not exist any more done"},
		"there is one of its name":    {another, shoot(3, succeeded, 100, ""), "was deleted meanwhile"},
		"gone":                        {goal(), nil, "was deleted meanwhile"},
		"not gone, though successful": {deleting, shoot(3, succeeded, 100, ""), "Reconcile 100%: Succeeded"},
		"failed":                      {goal(), shoot(3, failed, 45, "Bad."), "one: Reconcile failed at 45%"},
	} {
		sight := test.goal.Look(test.shoot)
		got := sight.Head + ": " + sight.Detail
		if sight.Ended && sight.Err == nil {
			got += " done"
		}
		switch {
		case sight.Err != nil && (!sight.Ended || !strings.Contains(sight.Err.Error(), test.want)):
			t.Errorf("%s: got %v", name, sight.Err)
		case sight.Err == nil && got != test.want:
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// A failure tells every error with its codes, what to do about each code once, and what to run then.
func TestFailure(t *testing.T) {
	s := shoot(3, gardencorev1beta1.LastOperationStateFailed, 30, "several")
	quota := []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraQuotaExceeded}
	s.Status.LastErrors = []gardencorev1beta1.LastError{
		{TaskID: new("deployInfrastructure"), Description: "no addresses left", Codes: quota},
		{Description: "no machines left", Codes: append(quota, "ERR_OF_ANOTHER_VERSION")},
	}
	const want = `shoot garden-demo/one: Reconcile failed at 30%, and is not tried again by itself
  task deployInfrastructure: no addresses left (ERR_INFRA_QUOTA_EXCEEDED)
  no machines left (ERR_INFRA_QUOTA_EXCEEDED, ERR_OF_ANOTHER_VERSION)
ERR_INFRA_QUOTA_EXCEEDED: a quota of the infrastructure is used up; have it raised, or free what is not needed
Then: trellisctl retry shoot one --project demo --wait`
	if got := goal().Look(s).Err.Error(); got != want {
		t.Errorf("got:\n%s", got)
	}
}

func TestLines(t *testing.T) {
	view := NewView(goal(), began)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	step := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	step("before anything is known", view.Change(at(0)), "Waiting, 0s: for the garden")
	s := shoot(3, gardencorev1beta1.LastOperationStateProcessing, 45, "Deploying etcd")
	view.See(s)
	step("a change", view.Change(at(65)), "Reconcile 45%, 1m5s: Deploying etcd")
	view.See(s)
	step("no change", view.Change(at(70)), "")
	step("a terminal", view.Line(at(70), 80), "Reconcile 45%, 1m10s: Deploying etcd")
	step("a narrow one", view.Line(at(70), 19), "Reconcile 45%, 1m10")
	view.Lost(os.ErrDeadlineExceeded)
	step("a lost connection", view.Change(at(75)),
		"Reconcile 45%, 1m15s: no connection to the garden, trying again: i/o timeout")
	view.See(s)
	step("a new one", view.Change(at(80)), "Reconcile 45%, 1m20s: Deploying etcd")
}

// TestAttackLinesOfAWait: who writes the status of a Shoot, or the errors of its infrastructure, neither controls the
// terminal of who waits nor makes up lines.
func TestAttackLinesOfAWait(t *testing.T) {
	const evil = "ok\r\x1b[2K\x1b]0;title\x07\nReconcile 100%, 1s: Succeeded\u009b1A\u2028done\v"
	s := shoot(3, gardencorev1beta1.LastOperationStateFailed, 30, evil)
	s.Status.LastOperation.Type = evil
	s.Status.LastErrors = []gardencorev1beta1.LastError{
		{TaskID: new(evil), Description: evil, Codes: []gardencorev1beta1.ErrorCode{evil}},
	}
	ended := goal().Look(s).Err.Error()
	s.Status.LastErrors = nil
	described := goal().Look(s).Err.Error()
	s.Status.LastOperation.State = gardencorev1beta1.LastOperationStateProcessing
	view := NewView(goal(), began)
	view.See(s)
	waiting := shoot(0, "", 0, evil)
	waiting.Spec.SeedName = nil
	other := shoot(0, "", 0, evil)
	other.Spec.SeedName = new(evil)
	for what, text := range map[string]string{
		"a terminal": view.Line(began, 200), "a pipe": view.Change(began),
		"the scheduler": goal().Look(waiting).Detail, "the seed": goal().Look(other).Detail,
	} {
		if i := strings.IndexFunc(text, unicode.IsControl); i >= 0 || strings.Contains(text, "\u2028") {
			t.Errorf("%s: %q", what, text)
		}
	}
	for text, lines := range map[string]int{ended: 3, described: 3} {
		if got := strings.Count(text, "\n") + 1; got != lines || strings.ContainsAny(text, "\r\x1b\x07\v\u009b\u2028") {
			t.Errorf("%d lines: %q", got, text)
		}
	}
}
