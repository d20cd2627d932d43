package reply

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Clients of Kubernetes understand what is refused, also what no API server has said.
func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		err        error
		code       int
		reason     metav1.StatusReason
		retryAfter string
	}{
		"an answer": {
			fmt.Errorf("asking: %w", apierrors.NewTooManyRequests("busy", 3)), http.StatusTooManyRequests,
			metav1.StatusReasonTooManyRequests, "3",
		},
		"no answer": {
			errors.New("broken off"), http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "",
		},
		"without a code": {
			&apierrors.StatusError{ErrStatus: metav1.Status{Message: "no code", Reason: metav1.StatusReasonUnknown}},
			http.StatusInternalServerError, metav1.StatusReasonUnknown, "",
		},
	} {
		w := httptest.NewRecorder()
		Refusal(w, tc.err)
		status := metav1.Status{}
		if err := json.Unmarshal(w.Body.Bytes(), &status); err != nil {
			t.Fatal(err)
		}
		if w.Code != tc.code || int(status.Code) != tc.code || status.Reason != tc.reason || status.Kind != "Status" ||
			status.APIVersion != "v1" || w.Header().Get("Retry-After") != tc.retryAfter ||
			w.Header().Get("Content-Type") != "application/json" || status.Message == "" {
			t.Errorf("%s: got %d, %v, %s", name, w.Code, w.Header(), w.Body)
		}
	}
}

func TestValuesThatCannotBeWritten(t *testing.T) {
	w := httptest.NewRecorder()
	JSON(w, http.StatusOK, func() {})
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "InternalError") {
		t.Errorf("got %d, %s", w.Code, w.Body)
	}
}
