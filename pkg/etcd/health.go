package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// phase is what a steward is busy with, as /readyz tells it.
type phase string

const (
	phaseStarting  phase = "starting"
	phaseVerifying phase = "verifying the data"
	phaseRestoring phase = "restoring a backup"
	phaseAwaiting  phase = "restoring a backup: waiting for the store of backups"
	phaseServing   phase = "serving"
	phaseStopping  phase = "stopping"
)

// health answers probes.
type health struct {
	phase atomic.Value
	// ready returns why a serving etcd cannot be used.
	ready func() error
}

func newHealth() *health {
	h := &health{ready: func() error { return nil }}
	h.set(phaseStarting)
	return h
}

func (h *health) set(p phase) { h.phase.Store(p) }

func (h *health) readyz(w http.ResponseWriter, _ *http.Request) {
	if p := h.phase.Load().(phase); p != phaseServing {
		http.Error(w, string(p), http.StatusServiceUnavailable)
		return
	}
	if err := h.ready(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}

// listen serves probes and metrics until ctx is done. It returns when the address is bound.
func (h *health) listen(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("health address: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", h.readyz)
	mux.Handle("/metrics", promhttp.Handler())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			h.set(phaseStopping)
		}
	}()
	return nil
}
