package seedserver

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/trellis-garden/trellis/pkg/vpn"
)

// answerTimeout is how long the shoot has to answer. It is less than who asks waits for this server, so that it hears
// which end is silent.
const answerTimeout = 900 * time.Millisecond

// answers says whether the shoot answers now. Nothing is asked of the shoot but for that.
func (s *Server) answers() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+vpn.AnswersPath, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
		defer cancel()
		if err := s.tunnel.Ping(ctx, s.config.ShootAddress); err != nil {
			http.Error(w, "the shoot does not answer through the tunnel: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}
