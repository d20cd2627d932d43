package etcd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/pkg/v3/runtime"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

const (
	// stopGrace is how long requests may take that etcd has when it stops. Watches, which kube-apiserver always has,
	// are ended then.
	stopGrace = time.Second
	// ownFiles are kept for etcd itself: so many file descriptors are left when clients have taken all others.
	ownFiles = 150
)

// clientServer serves clients in etcd's place, which reads only once the authorities that it trusts: with others, it
// would have to be started again. What is served is etcd's own, but for its HTTP, which the health address has.
type clientServer struct {
	listener net.Listener
	// grpc serves; nil before etcd is ready.
	grpc *grpc.Server
	// ended tells why it serves no more.
	ended chan error
}

// listenToClients listens before etcd starts. Who connects meanwhile is served as soon as it is ready: refused, clients
// would come again in steps that grow.
func (s *Steward) listenToClients() (*clientServer, error) {
	if s.withoutClients {
		return nil, nil
	}
	scheme, host, err := hostOf(s.options.ListenClientURL)
	if err != nil {
		return nil, err
	}
	if scheme == "https" && s.certificates == nil {
		return nil, errors.New("the certificates of --listen-client-urls have not been read")
	}
	listener, err := transport.NewListener(host, "http", nil)
	if err != nil {
		return nil, fmt.Errorf("--listen-client-urls %s: %w", s.options.ListenClientURL, err)
	}
	most, err := runtime.FDLimit()
	if err != nil || most <= ownFiles {
		return nil, errors.Join(fmt.Errorf("serving clients needs more than %d file descriptors, there may be %d",
			ownFiles, most), err, listener.Close())
	}
	listener = transport.LimitListener(listener, int(min(most, 1<<30))-ownFiles)
	if s.certificates != nil {
		listener = s.certificates.follow(listener)
	}
	return &clientServer{listener: listener, ended: make(chan error, 1)}, nil
}

// serve serves clients from etcd until stop, as far as the gate lets them. What register registers is served as well.
func (c *clientServer) serve(etcd *embed.Etcd, certificates *certificates, gate *gate, register func(*grpc.Server)) {
	if c == nil {
		return
	}
	config := etcd.Config()
	options := append(gate.options(),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: config.GRPCKeepAliveMinTime}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: config.GRPCKeepAliveInterval, Timeout: config.GRPCKeepAliveTimeout,
		}),
	)
	c.grpc = v3rpc.Server(etcd.Server, certificates.config(), nil, options...)
	register(c.grpc)
	go func() { c.ended <- c.grpc.Serve(c.listener) }()
}

// stop lets requests end, for a moment, and takes no others.
func (c *clientServer) stop() {
	if c == nil {
		return
	}
	if c.grpc == nil {
		_ = c.listener.Close()
		return
	}
	patience := time.AfterFunc(stopGrace, c.grpc.Stop)
	defer patience.Stop()
	c.grpc.GracefulStop()
}

// startEtcd starts etcd with what serves its clients.
func (s *Steward) startEtcd(ctx context.Context, config *embed.Config) error {
	clients, err := s.listenToClients()
	if err != nil {
		return err
	}
	if s.etcd, err = embed.StartEtcd(config); err != nil {
		clients.stop()
		return err
	}
	if err := s.awaitReady(ctx); err != nil {
		clients.stop()
		// A server that never became ready has nobody to hand over to; asking it to would take minutes.
		s.etcd.Server.HardStop()
		s.etcd.Close()
		return err
	}
	clients.serve(s.etcd, s.certificates, &s.gate, s.serveMembers)
	s.clients = clients
	return nil
}

// closeEtcd ends etcd, and before it what serves its clients.
func (s *Steward) closeEtcd() {
	s.clients.stop()
	s.etcd.Close()
}
