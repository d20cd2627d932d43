package seedserver

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trellis-garden/trellis/pkg/vpn"
)

// A server says of a silent shoot that it is silent, before who asks gives the server up.
func TestAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		tunnel       loopback
		method, path string
		want         int
	}{
		"answers":   {loopback{}, http.MethodGet, vpn.AnswersPath, http.StatusOK},
		"silent":    {loopback{silent: true}, http.MethodGet, vpn.AnswersPath, http.StatusServiceUnavailable},
		"no path":   {loopback{}, http.MethodGet, "/", http.StatusNotFound},
		"no method": {loopback{}, http.MethodPost, vpn.AnswersPath, http.StatusMethodNotAllowed},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, recorder := time.Now(), httptest.NewRecorder()
			serverOf(test.tunnel).proxy.ServeHTTP(recorder, httptest.NewRequest(test.method, test.path, nil))
			if took := time.Since(began); recorder.Code != test.want || took >= time.Second {
				t.Errorf("%s: %d after %v, want %d", name, recorder.Code, took, test.want)
			}
		})
	}
}
