package script

import (
	"context"
	"errors"
	"fmt"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// Limits of one call.
const (
	// MaxSteps is the number of instructions and of steps in pattern matching.
	MaxSteps = 1_000_000
	// MaxTime is for runs that are slow with few steps, and for processors that are busy.
	MaxTime = 2 * time.Second
	// MaxBytes is what strings and tables may take that a script makes, those that it forgets included.
	MaxBytes = 64 << 20
	// MaxString is the length of one string that a script makes.
	MaxString = 1 << 20
	// MaxCalls is the depth of the call stack.
	MaxCalls = 200
	// MaxScript is the length of a script.
	MaxScript = 128 << 10
	// MaxResultValues, MaxResultBytes and MaxResultDepth are for what a script returns.
	MaxResultValues = 100_000
	MaxResultBytes  = 2 << 20
	MaxResultDepth  = 64

	maxValues = 16 << 10
)

// Reasons why a run ends early.
var (
	errSteps = fmt.Errorf("the script did not end within %d steps", MaxSteps)
	errTime  = fmt.Errorf("the script did not end within %s", MaxTime)
	errBytes = fmt.Errorf("the script makes strings and tables of more than %d MiB", MaxBytes>>20)
)

// budget is the context of a run. The virtual machine asks Done before every instruction.
type budget struct {
	context.Context
	steps    int
	bytes    int
	deadline time.Time
	ended    error
}

func newBudget(ctx context.Context) *budget {
	return &budget{Context: ctx, steps: MaxSteps, bytes: MaxBytes, deadline: time.Now().Add(MaxTime)}
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done counts a step.
func (b *budget) Done() <-chan struct{} {
	if b.spend(1) {
		return nil
	}
	return closed
}

// Err says why the run must end.
func (b *budget) Err() error { return b.ended }

// spend takes steps, and tells whether there were enough.
func (b *budget) spend(steps int) bool {
	if b.ended != nil {
		return false
	}
	before := b.steps
	b.steps -= steps
	switch {
	case b.steps < 0:
		b.ended = errSteps
	case before>>10 != b.steps>>10:
		b.checkTime()
	}
	return b.ended == nil
}

func (b *budget) checkTime() {
	if err := b.Context.Err(); err != nil {
		b.ended = errors.Join(errTime, err)
	} else if time.Now().After(b.deadline) {
		b.ended = errTime
	}
}

// allocate takes bytes, and ends the run if there aren't enough.
func (b *budget) allocate(state *lua.LState, bytes int) {
	if bytes < 0 || bytes > b.bytes {
		b.ended = errBytes
	}
	if b.ended != nil {
		state.RaiseError("%s", b.ended)
	}
	b.bytes -= bytes
}

// text makes a string of a length that is known before.
func (b *budget) text(state *lua.LState, length int) {
	if length > MaxString {
		state.RaiseError("a string of %d bytes; at most %d are possible", length, MaxString)
	}
	b.allocate(state, length)
}
