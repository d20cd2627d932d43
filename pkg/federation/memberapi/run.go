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
)

// Options of a server.
type Options struct {
	// Listen is the address that is listened on; "" serves no API of members.
	Listen string
	// Address by which the fleet's kube-apiserver reaches what is listened on.
	Address string
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
	server, err := New(rest.CopyConfig(mgr.GetConfig()), mgr.GetClient(), mgr.GetAPIReader(), dial, log)
	if err != nil {
		return err
	}
	mayHandBack, err := mayHandBack(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("connection to the fleet: %w", err)
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return server.run(ctx, &publisher{client: fleet, mayHandBack: mayHandBack}, options.Listen, ip)
	}))
}

// run serves until ctx ends. It gives back what it took over before it stops answering.
func (s *Server) run(ctx context.Context, p *publisher, listen string, ip netip.Addr) error {
	certificate, authority, err := selfSigned(host(), time.Now())
	if err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", listen, &tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert, Certificates: []tls.Certificate{certificate},
		NextProtos: []string{"h2", "http/1.1"},
	})
	if err != nil {
		return fmt.Errorf("serving the API of members: %w", err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return err
	}
	address, err := netip.ParseAddrPort(net.JoinHostPort(ip.String(), port))
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: 30 * time.Second,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	p.address, p.authority = address, authority
	s.keepPublished(ctx, p)
	<-ctx.Done()
	return s.end(context.WithoutCancel(ctx), p, server, served)
}

const (
	// goodbye bounds the removal of the registration; drain is what requests that have begun are given.
	goodbye = 2 * time.Second
	drain   = time.Second
)

func (s *Server) end(ctx context.Context, p *publisher, server *http.Server, served <-chan error) error {
	bounded, cancel := context.WithTimeout(ctx, goodbye)
	defer cancel()
	err := p.unpublish(bounded)
	draining, stop := context.WithTimeout(ctx, drain)
	defer stop()
	_ = server.Shutdown(draining)
	_ = server.Close()
	if serving := <-served; !errors.Is(serving, http.ErrServerClosed) {
		err = errors.Join(err, serving)
	}
	return err
}

// certificateLife is longer than a process runs: each makes its own.
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
