package plan

import (
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// ConfigurationError is a mistake in the user's objects.
type ConfigurationError struct {
	// Err says what is wrong.
	Err error
}

// Error implements error.
func (e *ConfigurationError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ConfigurationError) Unwrap() error { return e.Err }

// ErrorCodes tells users that they must correct something.
func (e *ConfigurationError) ErrorCodes() []gardencorev1beta1.ErrorCode {
	return []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorConfigurationProblem}
}
