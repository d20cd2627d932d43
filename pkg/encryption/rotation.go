package encryption

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"
)

// Stage is how far a rotation of the keys has come.
type Stage string

// The stages, in order. Servers of two neighbouring stages may run side by side: each reads what the other writes.
const (
	// Preparing: every server learns to read with the new key. Objects are still written with the old one.
	Preparing Stage = "Preparing"
	// Rewriting: objects are written with the new key, and those that nobody writes are written anew.
	Rewriting Stage = "Rewriting"
	// Completing: nothing is encrypted with the old key any more, so servers forget it.
	Completing Stage = "Completing"
	// Completed: the old key is deleted.
	Completed Stage = "Completed"
)

func (s Stage) dropsOld() bool { return s == Completing || s == Completed }

// Record is what has to be remembered of the last rotation. The zero Record is that of servers whose keys never
// rotated.
type Record struct {
	// Initiated is when the rotation was asked for, in whole seconds.
	Initiated time.Time
	// Stage is how far it has come.
	Stage Stage
}

// UnderWay tells whether a rotation was begun and has not ended.
func (r Record) UnderWay() bool { return r.Stage != "" && r.Stage != Completed }

// Initiations is what the secrets manager has to know about keys of these configuration names.
func (r Record) Initiations(names ...string) map[string]time.Time {
	initiations := map[string]time.Time{}
	for _, name := range names {
		if !r.Initiated.IsZero() {
			initiations[name] = r.Initiated
		}
	}
	return initiations
}

// Rotation replaces the keys of API servers. It goes on where an earlier run was stopped, whatever stopped it.
type Rotation struct {
	// Load and Save keep the record.
	Load func(context.Context) (Record, error)
	Save func(context.Context, Record) error
	// Deploy gives every server the configuration of the record's stage. It returns when no server runs with another
	// one.
	Deploy func(context.Context, Record) error
	// Rewrite writes every encrypted object anew.
	Rewrite func(context.Context) error
	// Drop deletes what is left of the old keys; nil when somebody else does.
	Drop  func(context.Context) error
	Clock clock.PassiveClock
	// Until is the stage after whose end it stops; empty to go on to Completed.
	Until Stage
}

// Run begins a rotation, or finishes the one that is under way.
func (r Rotation) Run(ctx context.Context) error {
	record, err := r.Load(ctx)
	if err != nil {
		return fmt.Errorf("reading how far the rotation is: %w", err)
	}
	if !record.UnderWay() {
		if err := r.enter(ctx, &record, Preparing); err != nil {
			return err
		}
	}
	for record.UnderWay() {
		if err := r.finish(ctx, record); err != nil {
			return fmt.Errorf("rotation of encryption keys, stage %s: %w", record.Stage, err)
		}
		if record.Stage == r.Until {
			return nil
		}
		if err := r.enter(ctx, &record, following[record.Stage]); err != nil {
			return err
		}
	}
	return nil
}

// following is the stage after each.
var following = map[Stage]Stage{Preparing: Rewriting, Rewriting: Completing, Completing: Completed}

// enter remembers a stage before anything of it is done.
func (r Rotation) enter(ctx context.Context, record *Record, stage Stage) error {
	next := Record{Initiated: record.Initiated, Stage: stage}
	if stage == Preparing {
		next.Initiated = r.Clock.Now().Truncate(time.Second)
	}
	if err := r.Save(ctx, next); err != nil {
		return fmt.Errorf("remembering stage %s of the rotation: %w", stage, err)
	}
	*record = next
	return nil
}

// finish does what a stage is for.
func (r Rotation) finish(ctx context.Context, record Record) error {
	if _, known := following[record.Stage]; !known {
		return fmt.Errorf("the recorded stage %q is none that is known", record.Stage)
	}
	if err := r.Deploy(ctx, record); err != nil {
		return err
	}
	switch record.Stage {
	case Rewriting:
		return r.Rewrite(ctx)
	case Completing:
		if r.Drop != nil {
			return r.Drop(ctx)
		}
	}
	return nil
}
