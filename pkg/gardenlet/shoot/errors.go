package shoot

import (
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/flow"
)

// coded is an error that knows what it means to the user.
type coded interface {
	error
	ErrorCodes() []gardencorev1beta1.ErrorCode
}

// configurationError is a mistake in the user's objects.
type configurationError struct{ error }

// Unwrap returns the cause.
func (e *configurationError) Unwrap() error { return e.error }

// ErrorCodes implements coded.
func (e *configurationError) ErrorCodes() []gardencorev1beta1.ErrorCode {
	return []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorConfigurationProblem}
}

// cleanupError says that something inside the cluster does not go away.
type cleanupError struct{ error }

// Unwrap returns the cause.
func (e *cleanupError) Unwrap() error { return e.error }

// ErrorCodes implements coded.
func (e *cleanupError) ErrorCodes() []gardencorev1beta1.ErrorCode {
	return []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorCleanupClusterResources}
}

// nonRetryable are codes that only the user can do something about.
var nonRetryable = []gardencorev1beta1.ErrorCode{
	gardencorev1beta1.ErrorInfraUnauthenticated, gardencorev1beta1.ErrorInfraUnauthorized, gardencorev1beta1.ErrorInfraQuotaExceeded,
	gardencorev1beta1.ErrorInfraRateLimitsExceeded, gardencorev1beta1.ErrorInfraDependencies, gardencorev1beta1.ErrorConfigurationProblem,
	gardencorev1beta1.ErrorProblematicWebhook,
}

// lastErrors turns the failure of a flow into the form of a Shoot's status: one entry per failed task, or one for an error
// that is not a task's.
func lastErrors(err error, now metav1.Time) []gardencorev1beta1.LastError {
	if err == nil {
		return nil
	}
	failures := flow.TaskErrors(err)
	if len(failures) == 0 {
		return []gardencorev1beta1.LastError{{Description: err.Error(), Codes: codesOf(err), LastUpdateTime: &now}}
	}
	var list []gardencorev1beta1.LastError
	for _, failure := range failures {
		list = append(list, gardencorev1beta1.LastError{
			Description: failure.Error(), TaskID: ptr.To(string(failure.TaskID)), Codes: codesOf(failure.Err), LastUpdateTime: &now,
		})
	}
	return list
}

// codesOf returns the codes of an error, if it has any.
func codesOf(err error) []gardencorev1beta1.ErrorCode {
	var known coded
	if errors.As(err, &known) {
		return known.ErrorCodes()
	}
	return nil
}

// withoutTask returns the errors without those of a task that has succeeded in the meantime.
func withoutTask(list []gardencorev1beta1.LastError, task string) []gardencorev1beta1.LastError {
	return slices.DeleteFunc(slices.Clone(list), func(e gardencorev1beta1.LastError) bool { return ptr.Deref(e.TaskID, "") == task })
}

// hopeless says whether trying again cannot help before the user changes something.
func hopeless(list []gardencorev1beta1.LastError) bool {
	return slices.ContainsFunc(list, func(e gardencorev1beta1.LastError) bool {
		return slices.ContainsFunc(e.Codes, func(code gardencorev1beta1.ErrorCode) bool { return slices.Contains(nonRetryable, code) })
	})
}
