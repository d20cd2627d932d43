package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// expiry is 0 until the fleet has signed a certificate.
var expiry = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "federation_agent_certificate_expiration_timestamp_seconds",
	Help: "When the certificate expires by which the fleet knows the agent, in seconds since 1970; 0 while it has " +
		"none.",
})

func init() { metrics.Registry.MustRegister(expiry) }

// tell answers /healthz, /readyz and /metrics until ctx ends, also while the agent waits to be accepted: a pod that
// waits is healthy, and not to be started anew.
func (a *agent) tell(ctx context.Context) error {
	health, numbers := http.NewServeMux(), http.NewServeMux()
	health.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	health.HandleFunc("GET /readyz", a.ready)
	numbers.Handle("GET /metrics",
		promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	if err := listen(ctx, a.HealthAddress, health); err != nil {
		return fmt.Errorf("--health-address: %w", err)
	}
	if err := listen(ctx, a.MetricsAddress, numbers); err != nil {
		return fmt.Errorf("--metrics-address: %w", err)
	}
	return nil
}

// ready tells whether the agent serves its member.
func (a *agent) ready(w http.ResponseWriter, _ *http.Request) {
	if !a.serving.Load() {
		http.Error(w, "the agent does not serve its member yet: see its log", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok"))
}

// listen serves at an address until ctx ends; nothing at "0".
func listen(ctx context.Context, address string, handler http.Handler) error {
	if address == "0" {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		// It ends with ctx; what else may end it leaves the agent without an answer, and so starts it anew.
		if err := server.Serve(listener); errors.Is(err, http.ErrServerClosed) {
			return
		}
		_ = listener.Close()
	}()
	return nil
}
