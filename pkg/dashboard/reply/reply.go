// Package reply is what the dashboard's server answers its pages, and how it reads what they send: which reasons there
// are for a refusal, and which Status tells of an error. How that is written is the package of the same name in pkg.
package reply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-garden/trellis/pkg/reply"
)

// Reasons that are not Kubernetes' own.
const (
	// ReasonSessionExpired: whoever asks has to log in again.
	ReasonSessionExpired metav1.StatusReason = "SessionExpired"
	// ReasonCSRF: the request is not known to come from a page of the dashboard.
	ReasonCSRF metav1.StatusReason = "CSRF"
	// ReasonNotProxied: browsers have no way to this path.
	ReasonNotProxied metav1.StatusReason = "NotProxied"
	// ReasonUnavailable: a cluster cannot be reached.
	ReasonUnavailable metav1.StatusReason = "Unavailable"
)

// Error is an error that is answered with a code and a reason.
func Error(code int, reason metav1.StatusReason, format string, arguments ...any) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: fmt.Sprintf(format, arguments...),
	}}
}

// Invalid is an error about fields of what was sent.
func Invalid(message string, causes ...metav1.StatusCause) *apierrors.StatusError {
	err := Error(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "%s", message)
	err.ErrStatus.Details = &metav1.StatusDetails{Causes: causes}
	return err
}

// BadRequest is an error about what was asked.
func BadRequest(format string, arguments ...any) *apierrors.StatusError {
	return Error(http.StatusBadRequest, metav1.StatusReasonBadRequest, format, arguments...)
}

// TooMany is an error about a limit, with the seconds after which one may try again.
func TooMany(seconds int, format string, arguments ...any) *apierrors.StatusError {
	err := Error(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, format, arguments...)
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(seconds)}
	return err
}

// StatusOf says in a Status what went wrong. What API servers answered is told as it is. Of other errors it is told
// that a cluster could not be reached, as these are from the way to one.
func StatusOf(err error) metav1.Status {
	var status apierrors.APIStatus
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &status):
		result := status.Status()
		result.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		if result.Code < 400 || result.Code > 599 {
			result.Code = http.StatusInternalServerError
		}
		return result
	case errors.As(err, &large):
		return Error(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge,
			"what was sent is larger than %d bytes", large.Limit).ErrStatus
	case errors.Is(err, context.DeadlineExceeded):
		return Error(http.StatusGatewayTimeout, metav1.StatusReasonTimeout,
			"the cluster did not answer in time").ErrStatus
	}
	return Error(http.StatusServiceUnavailable, ReasonUnavailable, "the cluster cannot be reached: %v", err).ErrStatus
}

// Failure answers with what went wrong.
func Failure(w http.ResponseWriter, err error) { reply.Status(w, StatusOf(err)) }

// JSON answers with a value.
func JSON(w http.ResponseWriter, code int, value any) { reply.JSON(w, code, value) }

// Read decodes the body of a request. Fields that there are not are refused: somebody relies on them.
func Read(r *http.Request, into any) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return Error(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			"Content-Type must be application/json")
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		if large := new(http.MaxBytesError); errors.As(err, &large) {
			return err
		}
		return BadRequest("the body cannot be read: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return BadRequest("the body has more than one document")
	}
	return nil
}
