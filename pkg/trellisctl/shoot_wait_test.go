package trellisctl

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/trellisctl/progress"
)

// called is a command that somebody has called, what it printed, and what it told.
func called(t *testing.T, in string) (command *cobra.Command, out, told *bytes.Buffer) {
	t.Helper()
	command, out, told = &cobra.Command{Use: "test"}, &bytes.Buffer{}, &bytes.Buffer{}
	command.SetContext(t.Context())
	command.SetOut(out)
	command.SetErr(told)
	command.SetIn(strings.NewReader(in))
	return command, out, told
}

// operating is a shoot at an operation.
func operating(state gardencorev1beta1.LastOperationState, percent int32,
	description string) *gardencorev1beta1.Shoot {
	s := shoot("garden-demo", "one", "local")
	s.Generation, s.Status.ObservedGeneration = 2, 2
	s.Status.LastOperation = &gardencorev1beta1.LastOperation{
		Type: gardencorev1beta1.LastOperationTypeReconcile, State: state, Progress: percent, Description: description,
	}
	return s
}

var processing = operating(gardencorev1beta1.LastOperationStateProcessing, 10, "Deploying etcd")

// watches plays the garden's watches of shoots, one after another; a last one without events goes on.
func watches(all ...func() (watch.Interface, error)) interceptor.Funcs {
	calls := 0
	return interceptor.Funcs{
		Watch: func(context.Context, client.WithWatch, client.ObjectList,
			...client.ListOption) (watch.Interface, error) {
			calls++
			if calls > len(all) {
				return watch.NewFake(), nil
			}
			return all[calls-1]()
		},
	}
}

func refusing(err error) func() (watch.Interface, error) {
	return func() (watch.Interface, error) { return nil, err }
}

// seeing is a watch that tells of shoots, and is closed then.
func seeing(shoots ...*gardencorev1beta1.Shoot) func() (watch.Interface, error) {
	return func() (watch.Interface, error) {
		events := watch.NewFakeWithChanSize(len(shoots), false)
		for _, one := range shoots {
			events.Modify(one)
		}
		return events, nil
	}
}

func waitedFor(t *testing.T, functions interceptor.Funcs, timeout time.Duration) (string, error) {
	t.Helper()
	var out bytes.Buffer
	s := session(t, Target{Project: "demo", Shoot: "one"}, functions, processing.DeepCopy())
	err := s.waitFor(t.Context(), &out, timeout, s.goalOf(processing))
	return out.String(), err
}

// A wait tells each change once, and goes on after a lost connection.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, err := waitedFor(t, watches(refusing(errors.New("connection refused")),
			seeing(operating(gardencorev1beta1.LastOperationStateProcessing, 50, "Deploying kube-apiserver"),
				operating(gardencorev1beta1.LastOperationStateSucceeded, 100, "Good."))), time.Hour)
		const want = `Reconcile 10%, 0s: Deploying etcd
Reconcile 10%, 0s: no connection to the garden, trying again: connection refused
Reconcile 10%, 2s: Deploying etcd
Reconcile 50%, 2s: Deploying kube-apiserver
`
		if err != nil || out != want {
			t.Errorf("got %v\n%s", err, out)
		}
	})
}

func TestWaitThatEndsOtherwise(t *testing.T) {
	forbidden := apierrors.NewForbidden(gardencorev1beta1.Resource("shoots"), "one", errors.New("no member any more"))
	for want, functions := range map[string]interceptor.Funcs{
		"Reconcile failed at 50%":                               watches(seeing(operating("Failed", 50, "Bad."))),
		"the operation goes on without this command":            watches(refusing(forbidden)),
		"wait longer by: trellisctl wait shoot one --project":   watches(),
		"is not done after 1m30s (Reconcile 10%: Deploying etc": watches(),
	} {
		synctest.Test(t, func(t *testing.T) {
			if out, err := waitedFor(t, functions, 90*time.Second); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s\n%s", err, want, out)
			}
		})
	}
}

// Whoever interrupts a wait is told that the operation is not interrupted.
func TestInterruptedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, interrupt)
		var out bytes.Buffer
		s := session(t, Target{Project: "demo", Shoot: "one"}, watches(), processing.DeepCopy())
		err := s.waitFor(ctx, &out, time.Hour, s.goalOf(processing))
		if !errors.Is(err, context.Canceled) ||
			!strings.Contains(out.String(), "goes on without this command; see how far it is: trellisctl wait shoot") {
			t.Errorf("got %v\n%s", err, out.String())
		}
	})
}

// A deleted shoot is waited for until it is gone, also when nobody was connected then.
func TestWaitForADeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := session(t, Target{Project: "demo", Shoot: "one"}, watches())
		goal := s.goalOf(processing)
		goal.Gone = true
		command, out, _ := called(t, "")
		if err := s.await(command, waiting{wait: true, timeout: time.Minute}, goal); err != nil {
			t.Error(err)
		}
		if got := out.String(); got != "Shoot garden-demo/one is gone\n" {
			t.Errorf("got %q", got)
		}
	})
}

func TestNotWaiting(t *testing.T) {
	s := session(t, Target{Shoot: "one"}, interceptor.Funcs{})
	command, out, told := called(t, "")
	if err := s.await(command, waiting{}, s.goalOf(processing)); err != nil {
		t.Error(err)
	}
	if out.Len() > 0 || told.String() != "See how far it is: trellisctl wait shoot one\n" {
		t.Errorf("got %q, %q", out, told)
	}
}

// The line of a terminal is rewritten, fits it, and is gone at the end.
func TestLineOfATerminal(t *testing.T) {
	var out bytes.Buffer
	line := &liveLine{out: &out, columns: func() int { return 25 }}
	begun := time.Now()
	view := progress.NewView(progress.GoalOf(processing, "one"), begun)
	view.See(processing)
	line.show(view, begun)
	line.show(view, begun.Add(time.Second))
	line.clear()
	const want = "\r\x1b[KReconcile 10%, 0s: Deplo\r\x1b[KReconcile 10%, 1s: Deplo\r\x1b[K"
	if out.String() != want {
		t.Errorf("got %q", out.String())
	}
	if terminalOf(Visible(&out)) != nil || terminalOf(&out) != nil || terminalOf(nil) != nil {
		t.Error("a buffer is no terminal")
	}
}

func TestChangesThatWaitForMaintenance(t *testing.T) {
	before := operating("Succeeded", 100, "")
	before.Spec.Maintenance = &gardencorev1beta1.Maintenance{
		ConfineSpecUpdateRollout: new(true),
		TimeWindow:               &gardencorev1beta1.MaintenanceTimeWindow{Begin: "220000+0000", End: "230000+0000"},
	}
	s := session(t, Target{Project: "demo", Shoot: "one"}, interceptor.Funcs{}, before)
	command, out, told := called(t, "")
	if err := s.awaitChange(command, waiting{wait: true, timeout: time.Minute}, before, before); err != nil {
		t.Error(err)
	}
	if out.Len() > 0 || !strings.Contains(told.String(), "from 220000+0000 to 230000+0000; to begin now: trellisctl "+
		"reconcile shoot one --project demo") {
		t.Errorf("got %q, %q", out, told)
	}
	after := before.DeepCopy()
	after.Generation++
	if got := waitsForMaintenance(before, after); got != "" {
		t.Errorf("a change that has begun waits: %s", got)
	}
}
