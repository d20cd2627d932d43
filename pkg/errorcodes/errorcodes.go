// Package errorcodes gives errors the codes by which programs classify them, and says which codes answers of
// infrastructures have. What follows from a code is said beside its type, in pkg/apis/core/v1beta1.
package errorcodes

import (
	"net/http"
	"slices"

	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Coded is an error that knows its codes.
type Coded interface {
	error
	// ErrorCodes returns them.
	ErrorCodes() []gardencorev1beta1.ErrorCode
}

// coded is what With makes.
type coded struct {
	error
	codes []gardencorev1beta1.ErrorCode
}

func (e *coded) Unwrap() error { return e.error }

func (e *coded) ErrorCodes() []gardencorev1beta1.ErrorCode { return e.codes }

// With adds codes to an error; nil stays nil.
func With(err error, codes ...gardencorev1beta1.ErrorCode) error {
	if err == nil || len(codes) == 0 {
		return err
	}
	return &coded{error: err, codes: codes}
}

// Of collects the codes of an error and of all it wraps, each once, in the order in which the errors are unwrapped.
func Of(err error) []gardencorev1beta1.ErrorCode {
	var all []gardencorev1beta1.ErrorCode
	if known, ok := err.(Coded); ok { //nolint:errorlint // each level is visited
		all = add(all, known.ErrorCodes())
	}
	switch wrapping := err.(type) { //nolint:errorlint // each level is visited
	case interface{ Unwrap() error }:
		all = add(all, Of(wrapping.Unwrap()))
	case interface{ Unwrap() []error }:
		for _, inner := range wrapping.Unwrap() {
			all = add(all, Of(inner))
		}
	}
	return all
}

func add(to, codes []gardencorev1beta1.ErrorCode) []gardencorev1beta1.ErrorCode {
	for _, code := range codes {
		if !slices.Contains(to, code) {
			to = append(to, code)
		}
	}
	return to
}

// ofStatus has the codes of HTTP statuses with which infrastructures refuse. Others are tried again.
var ofStatus = map[int]gardencorev1beta1.ErrorCode{
	http.StatusBadRequest:   gardencorev1beta1.ErrorConfigurationProblem,
	http.StatusUnauthorized: gardencorev1beta1.ErrorInfraUnauthenticated,
	http.StatusForbidden:    gardencorev1beta1.ErrorInfraUnauthorized,
	http.StatusConflict:     gardencorev1beta1.ErrorConfigurationProblem,
}

// WithStatus adds to an error the code of the HTTP status that it comes from, if that has one.
func WithStatus(err error, status int) error {
	if code, found := ofStatus[status]; found {
		return With(err, code)
	}
	return err
}

// ofDriver has the codes of what drivers of machine-controller-manager answer, which speak of errors as gRPC does.
// Others are tried again.
var ofDriver = map[string]gardencorev1beta1.ErrorCode{
	codes.InvalidArgument.String():   gardencorev1beta1.ErrorConfigurationProblem,
	codes.Unauthenticated.String():   gardencorev1beta1.ErrorInfraUnauthenticated,
	codes.PermissionDenied.String():  gardencorev1beta1.ErrorInfraUnauthorized,
	codes.ResourceExhausted.String(): gardencorev1beta1.ErrorInfraResourcesDepleted,
}

// OfDriver returns the code of a driver's answer, e.g. "Unauthenticated".
func OfDriver(answer string) (code gardencorev1beta1.ErrorCode, found bool) {
	code, found = ofDriver[answer]
	return code, found
}

// NeedChange says whether one of the codes stays until somebody changes something.
func NeedChange(codes []gardencorev1beta1.ErrorCode) bool {
	return slices.ContainsFunc(codes, gardencorev1beta1.ErrorCode.NeedsChange)
}

// AreCertain says whether waiting is in vain for one of the codes.
func AreCertain(codes []gardencorev1beta1.ErrorCode) bool {
	return slices.ContainsFunc(codes, gardencorev1beta1.ErrorCode.IsCertain)
}
