package flow

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// RetryUntilTimeout runs the function again every interval until it succeeds, timeout is over, ctx is done, or it
// returns a Permanent error. The error then names the time spent and the last cause.
func (fn TaskFn) RetryUntilTimeout(interval, timeout time.Duration) TaskFn {
	return func(ctx context.Context) error {
		bounded, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		timer := time.NewTimer(interval)
		defer timer.Stop()

		var cause error
		for {
			err := fn(bounded)
			if err == nil || IsPermanent(err) {
				return err
			}
			if cause == nil || !errors.Is(err, context.DeadlineExceeded) {
				cause = err
			}
			Awaits(bounded, cause)
			timer.Reset(interval)
			select {
			case <-bounded.Done():
				return retryError(ctx, timeout, cause)
			case <-timer.C:
			}
		}
	}
}

func retryError(ctx context.Context, timeout time.Duration, cause error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopped: %w; last error: %w", err, cause)
	}
	return fmt.Errorf("not done after %s: %w", timeout, cause)
}

// Timeout cancels the function's context when d is over.
func (fn TaskFn) Timeout(d time.Duration) TaskFn {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		return fn(ctx)
	}
}

// Sequential runs functions one after the other and stops at the first error.
func Sequential(fns ...TaskFn) TaskFn {
	return func(ctx context.Context) error {
		for _, fn := range fns {
			if err := fn(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// Parallel runs functions at the same time, waits for all of them and joins their errors.
func Parallel(fns ...TaskFn) TaskFn {
	return func(ctx context.Context) error {
		results := make(chan error, len(fns))
		for _, fn := range fns {
			go func() { results <- safely(ctx, fn) }()
		}
		var all []error
		for range fns {
			all = append(all, <-results)
		}
		return errors.Join(all...)
	}
}
