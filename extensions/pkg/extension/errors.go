package extension

import (
	"errors"
	"time"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// codedError carries the codes by which programs, and gardenlet first of all, classify it.
type codedError struct {
	error
	codes []gardencorev1beta1.ErrorCode
}

func (e *codedError) Unwrap() error { return e.error }

// WithCodes adds codes to an error; nil stays nil.
func WithCodes(err error, codes ...gardencorev1beta1.ErrorCode) error {
	if err == nil || len(codes) == 0 {
		return err
	}
	return &codedError{error: err, codes: codes}
}

// Codes collects the codes of an error and of all it wraps, without repetition.
func Codes(err error) []gardencorev1beta1.ErrorCode {
	var codes []gardencorev1beta1.ErrorCode
	seen := map[gardencorev1beta1.ErrorCode]bool{}
	collectCodes(err, func(code gardencorev1beta1.ErrorCode) {
		if !seen[code] {
			seen[code] = true
			codes = append(codes, code)
		}
	})
	return codes
}

func collectCodes(err error, add func(gardencorev1beta1.ErrorCode)) {
	if coded, ok := err.(*codedError); ok { //nolint:errorlint // each level is visited
		for _, code := range coded.codes {
			add(code)
		}
	}
	switch wrapped := err.(type) { //nolint:errorlint // each level is visited
	case interface{ Unwrap() error }:
		collectCodes(wrapped.Unwrap(), add)
	case interface{ Unwrap() []error }:
		for _, inner := range wrapped.Unwrap() {
			collectCodes(inner, add)
		}
	}
}

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
