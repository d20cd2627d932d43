package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// serveHealth answers /healthz until ctx ends, also while the agent waits to be accepted: a pod that waits is not to be started anew.
func serveHealth(ctx context.Context, address string) error {
	if address == "0" {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--health-address: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
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
