package dashboard

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/trellis-garden/trellis/pkg/dashboard/pages"
)

// Options are those of the command line.
type Options struct {
	// Config is the path of the configuration file.
	Config string
	// Listen is where browsers connect.
	Listen string
	// TLSCertFile and TLSKeyFile are the server's certificate. Without them it speaks plain HTTP, to a gateway that
	// ends TLS.
	TLSCertFile, TLSKeyFile string
	// HealthAddress of /healthz, /readyz and /metrics, "0" for none.
	HealthAddress string
}

const (
	// shutdown is how long requests that are under way may take in the end.
	shutdown = 15 * time.Second
	// settle is how long the server still takes connections after it said that it is not ready.
	settle = 3 * time.Second
	// Ending is how long it takes a server at most to end.
	Ending = settle + shutdown
)

// Run serves until the context ends.
func Run(ctx context.Context, options Options, log logr.Logger) error {
	config, err := ReadConfig(options.Config)
	if err != nil {
		return err
	}
	s, err := newServer(config, pages.Embedded(), time.Now)
	if err != nil {
		return err
	}
	s.certificateFiles = [2]string{options.TLSCertFile, options.TLSKeyFile}
	server, err := options.server(s)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", options.Listen)
	if err != nil {
		return err
	}
	health, err := s.serveHealth(ctx, options.HealthAddress)
	if err != nil {
		return err
	}
	defer health.Close()
	log.Info("Serving", "address", listener.Addr().String(), "publicURL", config.PublicURL, "garden",
		config.Garden.Server)
	return s.serve(ctx, server, listener)
}

// server for browsers. Bodies of answers may take their time, as logs that are followed do.
func (o Options) server(handler http.Handler) (*http.Server, error) {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
	}
	if (o.TLSCertFile == "") != (o.TLSKeyFile == "") {
		return nil, errors.New("--tls-cert-file and --tls-key-file are given together, or none of them")
	}
	if o.TLSCertFile == "" {
		return server, nil
	}
	if _, err := tls.LoadX509KeyPair(o.TLSCertFile, o.TLSKeyFile); err != nil {
		return nil, fmt.Errorf("certificate of the server: %w", err)
	}
	server.TLSConfig = &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		// The files are replaced when the certificate is renewed.
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(o.TLSCertFile, o.TLSKeyFile)
			return &pair, err
		},
	}
	return server, nil
}

// serve ends gracefully: sockets are told to connect elsewhere, requests are answered.
func (s *server) serve(ctx context.Context, server *http.Server, listener net.Listener) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		s.clusters.Keep(ctx)
		return nil
	})
	group.Go(func() (err error) {
		if server.TLSConfig != nil {
			err = server.ServeTLS(listener, "", "")
		} else {
			err = server.Serve(listener)
		}
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	})
	group.Go(func() error {
		<-ctx.Done()
		time.Sleep(s.settle)
		ending, cancel := context.WithTimeout(context.Background(), shutdown)
		defer cancel()
		// Shutdown knows nothing of sockets.
		s.live.Close(ending)
		if s.terminals != nil {
			s.terminals.Close(ending)
		}
		if err := server.Shutdown(ending); err != nil {
			return server.Close()
		}
		return nil
	})
	return group.Wait()
}

// serveHealth answers kubelet and Prometheus. A server that is to end is not ready, but alive.
func (s *server) serveHealth(ctx context.Context, address string) (*http.Server, error) {
	server := &http.Server{Handler: s.health(ctx), ReadHeaderTimeout: 5 * time.Second}
	if address == "0" {
		return server, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--health-address: %w", err)
	}
	go func() { _ = server.Serve(listener) }()
	return server, nil
}

func (s *server) health(ctx context.Context) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		gauge("trellis_dashboard_sockets", "Browsers that are connected for live views.", s.live.Sockets),
		gauge("trellis_dashboard_watches", "Watches that are open for them.", s.live.Watches))
	if s.terminals != nil {
		registry.MustRegister(gauge("trellis_dashboard_terminals", "Terminals that are open.", s.terminals.Terminals))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		switch {
		case ctx.Err() != nil:
			http.Error(w, "the server ends", http.StatusServiceUnavailable)
		case !s.pages.Built():
			http.Error(w, "the server was built without its pages", http.StatusServiceUnavailable)
		default:
			_, _ = w.Write([]byte("ok"))
		}
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

func gauge(name, help string, value func() int) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help},
		func() float64 { return float64(value()) })
}
