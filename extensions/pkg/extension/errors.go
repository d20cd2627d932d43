package extension

import (
	"errors"
	"time"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/errorcodes"
)

// WithCodes adds the codes by which programs, and gardenlet first of all, classify an error; nil stays nil.
func WithCodes(err error, codes ...gardencorev1beta1.ErrorCode) error {
	return errorcodes.With(err, codes...)
}

// Codes collects the codes of an error and of all it wraps, without repetition.
func Codes(err error) []gardencorev1beta1.ErrorCode { return errorcodes.Of(err) }

// RequeueAfter says that an operation is not finished for a reason that is no failure, and when to look again.
type RequeueAfter struct {
	// After is the time to wait.
	After time.Duration
	// Cause is what is waited for.
	Cause error
}

func (e *RequeueAfter) Error() string { return e.Cause.Error() }

func (e *RequeueAfter) Unwrap() error { return e.Cause }

// requeueDelay is the wait that an error asks for.
func requeueDelay(err error) (time.Duration, bool) {
	var requeue *RequeueAfter
	if errors.As(err, &requeue) {
		return requeue.After, true
	}
	return 0, false
}
