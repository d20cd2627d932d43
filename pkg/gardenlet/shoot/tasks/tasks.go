// Package tasks says how patient the tasks of a shoot's flows are.
package tasks

import (
	"time"

	"github.com/trellis-garden/trellis/pkg/flow"
)

const (
	// RetryInterval and retryTimeout bound the retries of tasks that write objects.
	RetryInterval = 500 * time.Millisecond
	retryTimeout  = 30 * time.Second
	// RolloutTimeout bounds the wait for a part of the control plane.
	RolloutTimeout = 5 * time.Minute
)

// Retried makes a task of a function that writes objects: it is tried again, because API servers restart and objects
// conflict.
func Retried(fn flow.TaskFn) flow.TaskFn { return fn.RetryUntilTimeout(RetryInterval, retryTimeout) }

// Rollout makes a task of a function that waits for pods.
func Rollout(fn flow.TaskFn) flow.TaskFn { return fn.Timeout(RolloutTimeout) }
