// Package health serves the small HTTP endpoints that kubelet, gardenlet and Prometheus ask: /healthz, /readyz, /tunnel
// and /metrics.
package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

// Server answers health questions. Nil functions leave their endpoint out.
type Server struct {
	// Ready returns why the process cannot serve yet, or nil.
	Ready func() error
	// Tunnel returns the state of the tunnel.
	Tunnel func() (transport.Stats, error)
	// Metrics are served at /metrics, with those of the process.
	Metrics []prometheus.Collector
}

// Counter is a number that only grows while the process lives. Its name ends in _total.
func Counter[N int64 | uint64](name, help string, value func() N) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help},
		func() float64 { return float64(value()) })
}

// Gauge is a number of now.
func Gauge[N int | int64](name, help string, value func() N) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
		func() float64 { return float64(value()) })
}

// Tunnel is the answer of /tunnel. Its status is 200 while the tunnel is up and 503 otherwise.
type Tunnel struct {
	// Up says that the last handshake is recent enough for traffic to flow.
	Up bool `json:"up"`
	// LastHandshake is left out when there was none.
	LastHandshake *time.Time `json:"lastHandshake,omitempty"`
	// AgeSeconds is the age of the last handshake.
	AgeSeconds *float64 `json:"ageSeconds,omitempty"`
	// ReceivedBytes and SentBytes count encrypted bytes.
	ReceivedBytes uint64 `json:"receivedBytes"`
	SentBytes     uint64 `json:"sentBytes"`
}

// TunnelOf describes the state of a tunnel at a time.
func TunnelOf(stats transport.Stats, now time.Time) Tunnel {
	tunnel := Tunnel{ReceivedBytes: stats.ReceivedBytes, SentBytes: stats.SentBytes}
	if stats.LastHandshake.IsZero() {
		return tunnel
	}
	age := now.Sub(stats.LastHandshake)
	seconds := age.Seconds()
	tunnel.LastHandshake, tunnel.AgeSeconds, tunnel.Up = &stats.LastHandshake, &seconds, stats.Up(now)
	return tunnel
}

// Handler returns the endpoints.
func (s Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	if s.Ready != nil {
		mux.HandleFunc("GET /readyz", s.ready)
	}
	if s.Tunnel != nil {
		mux.HandleFunc("GET /tunnel", s.tunnel)
	}
	if s.Metrics != nil {
		mux.Handle("GET /metrics", metrics(s.Metrics))
	}
	return mux
}

// Run serves on the address until ctx is done.
func (s Server) Run(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("health endpoint: %w", err)
	}
	server := &http.Server{Handler: s.Handler(), ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("health endpoint: %w", err)
	}
	return nil
}

func (s Server) ready(w http.ResponseWriter, _ *http.Request) {
	if err := s.Ready(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

func (s Server) tunnel(w http.ResponseWriter, _ *http.Request) {
	stats, err := s.Tunnel()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	tunnel := TunnelOf(stats, time.Now())
	w.Header().Set("Content-Type", "application/json")
	if !tunnel.Up {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(tunnel)
}

func metrics(own []prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(own...)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}
