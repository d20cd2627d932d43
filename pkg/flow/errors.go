package flow

import (
	"errors"
	"fmt"
	"strings"
)

// TaskError is the failure of one task.
type TaskError struct {
	// TaskID is the task that failed.
	TaskID TaskID
	// Err is what it returned.
	Err error
}

// Error implements error.
func (e *TaskError) Error() string { return fmt.Sprintf("task %q failed: %v", e.TaskID, e.Err) }

// Unwrap returns the task's own error.
func (e *TaskError) Unwrap() error { return e.Err }

// Errors are the failures of one run, in the order in which they happened.
type Errors []*TaskError

// Error implements error.
func (e Errors) Error() string {
	lines := make([]string, 0, len(e))
	for _, err := range e {
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "; ")
}

// Unwrap lets errors.Is and errors.As look into every task's error.
func (e Errors) Unwrap() []error {
	list := make([]error, 0, len(e))
	for _, err := range e {
		list = append(list, err)
	}
	return list
}

// TaskErrors returns the tasks' failures held in err, or nil when err did not come from a flow's Run.
func TaskErrors(err error) Errors {
	var list Errors
	if errors.As(err, &list) {
		return list
	}
	return nil
}

// Permanent marks an error that retrying cannot cure: RetryUntilTimeout returns it at once.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// IsPermanent reports whether err was marked by Permanent.
func IsPermanent(err error) bool {
	var permanent *permanentError
	return errors.As(err, &permanent)
}

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }
