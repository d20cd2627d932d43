// Package reply writes answers as Kubernetes' API servers do: values as JSON, and what went wrong as a Status.
package reply

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Refusal answers with an error as Kubernetes writes it; one of another kind means that what is asked for is
// unavailable.
func Refusal(w http.ResponseWriter, err error) {
	status := apierrors.NewServiceUnavailable(err.Error()).Status()
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status = known.Status()
	}
	Status(w, status)
}

// Status answers with what went wrong, and when to try again. A code that is none of a failure, as that of an error
// which never was an answer, becomes 500.
func Status(w http.ResponseWriter, status metav1.Status) {
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	if status.Code < 400 || status.Code > 599 {
		status.Code = http.StatusInternalServerError
	}
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	JSON(w, int(status.Code), status)
}

// JSON answers with a value.
func JSON(w http.ResponseWriter, code int, value any) {
	text, err := json.Marshal(value)
	if err != nil { // Values of ours can be written; those of clusters were read from JSON.
		code, text = http.StatusInternalServerError, []byte(`{"kind":"Status","code":500,"reason":"InternalError"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// Whoever asked may be gone; nobody else wants to know.
	_, _ = w.Write(text)
}
