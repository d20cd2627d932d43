package memberapi

import (
	"encoding/json"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// refuse answers with an error as Kubernetes writes it.
func refuse(w http.ResponseWriter, err error) {
	status := apierrors.NewServiceUnavailable(err.Error()).Status()
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	writeJSON(w, int(status.Code), status)
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// Whoever asked may be gone; nobody else wants to know.
	_ = json.NewEncoder(w).Encode(value)
}
