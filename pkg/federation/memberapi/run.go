package memberapi

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-garden/trellis/pkg/federation/outside"
	"github.com/trellis-garden/trellis/pkg/federation/tunnel"
)

// Options of a server.
type Options struct {
	// Listen is the address that is listened on; "" serves no API of members.
	Listen string
	// Address by which the fleet's kube-apiserver reaches what is listened on.
	Address string
	// CertFile and KeyFile are what all replicas serve with (NewCertificate). Without them the process is the only one,
	// and makes its own.
	CertFile, KeyFile string
	// Replicas is how many processes serve the API of members: agents keep a tunnel to each. 0 is one.
	Replicas int
}

// Add has a manager of a fleet serve the API of members, connected to by dial, while it runs. Its scheme must know
// APIServices.
func Add(mgr manager.Manager, options Options, dial outside.Dial) error {
	if options.Listen == "" {
		return nil
	}
	ip, err := netip.ParseAddr(options.Address)
	if err != nil {
		return fmt.Errorf("the address by which the fleet's kube-apiserver reaches the API of members: %w", err)
	}
	fleet, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return fmt.Errorf("connecting to the fleet: %w", err)
	}
	log := mgr.GetLogger().WithName("member-api")
	server, err := New(rest.CopyConfig(mgr.GetConfig()), mgr.GetClient(), mgr.GetAPIReader(), dial,
		tunnel.New(options.Replicas), log)
	if err != nil {
		return err
	}
	mayHandBack, err := mayHandBack(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("connection to the fleet: %w", err)
	}
	p := &publisher{client: fleet, mayHandBack: mayHandBack}
	if options.CertFile != "" {
		return addReplica(mgr, server, p, options, ip)
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return server.run(ctx, p, options.Listen, ip)
	}))
}

// run serves until ctx ends. It gives back what it took over before it stops answering.
func (s *Server) run(ctx context.Context, p *publisher, listen string, ip netip.Addr) error {
	certificate, authority, err := selfSigned(host(), time.Now())
	if err != nil {
		return err
	}
	answering, err := s.listen(ctx, listen, certificate)
	if err != nil {
		return err
	}
	if p.address, err = reachedAt(ip, answering.address); err != nil {
		return err
	}
	p.authority = authority
	s.keepPublished(ctx, p)
	<-ctx.Done()
	s.tunnels.Close()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	return errors.Join(p.unpublish(bounded), answering.end(ctx))
}

// reachedAt is where the kube-apiserver reaches by an IP address what is listened on.
func reachedAt(ip netip.Addr, listen string) (netip.AddrPort, error) {
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("address of the API of members: %w", err)
	}
	return netip.ParseAddrPort(net.JoinHostPort(ip.String(), port))
}

// answering is a server that listens.
type answering struct {
	server  *http.Server
	address string
	served  chan error
}

// listen has the server answer until end is called.
func (s *Server) listen(ctx context.Context, address string, certificate tls.Certificate) (*answering, error) {
	listener, err := tls.Listen("tcp", address, &tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert, Certificates: []tls.Certificate{certificate},
		NextProtos: []string{"h2", "http/1.1"},
	})
	if err != nil {
		return nil, fmt.Errorf("serving the API of members: %w", err)
	}
	return serveAt(listener, &http.Server{
		Handler: s, ReadHeaderTimeout: 30 * time.Second,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}), nil
}

// serveAt serves until end.
func serveAt(listener net.Listener, server *http.Server) *answering {
	a := &answering{server: server, address: listener.Addr().String(), served: make(chan error, 1)}
	go func() { a.served <- server.Serve(listener) }()
	return a
}

const (
	// goodbye bounds the removal of the registration; drain is what requests that have begun are given.
	goodbye = 2 * time.Second
	drain   = time.Second
)

// end is called when ctx has ended.
func (a *answering) end(ctx context.Context) error {
	draining, stop := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer stop()
	err := a.server.Shutdown(draining)
	if errors.Is(err, context.DeadlineExceeded) {
		err = a.server.Close() // what has not ended by now, as watches do not by themselves, is cut off
	}
	if served := <-a.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// certificateLife is longer than a process runs.
const certificateLife = 10 * 365 * 24 * time.Hour

// selfSigned makes a certificate that is its own authority, and whose key never leaves the process.
func selfSigned(name string, now time.Time) (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
