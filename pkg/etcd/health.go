package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// health answers probes, and who asks for the status.
type health struct {
	busy atomic.Pointer[busy]
	// ready returns why a serving etcd cannot be used.
	ready func() error
	// status is what is told.
	status func() status.Status
}

// busy is what a steward is busy with, and since when.
type busy struct {
	with  status.Phase
	since time.Time
}

func newHealth() *health {
	h := &health{ready: func() error { return nil }}
	h.set(status.Starting)
	return h
}

func (h *health) set(phase status.Phase) {
	if before := h.busy.Load(); before == nil || before.with != phase {
		h.busy.Store(&busy{phase, time.Now().UTC()})
	}
}

func (h *health) current() (status.Phase, time.Time) {
	now := h.busy.Load()
	return now.with, now.since
}

func (h *health) readyz(w http.ResponseWriter, _ *http.Request) {
	if phase, _ := h.current(); phase != status.Serving {
		http.Error(w, string(phase), http.StatusServiceUnavailable)
		return
	}
	if err := h.ready(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}

func (h *health) tellStatus(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(h.status())
}

// listen serves probes, the status and metrics until ctx is done. It returns when the address is bound.
func (h *health) listen(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("health address: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", h.readyz)
	mux.HandleFunc(http.MethodGet+" "+status.Path, h.tellStatus)
	mux.Handle("/metrics", promhttp.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			h.set(status.Stopping)
		}
	}()
	return nil
}
