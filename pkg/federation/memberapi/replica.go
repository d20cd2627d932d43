package memberapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// replica is one of several processes that serve the API of members with the same certificate. The one of them that
// leads has the kube-apiserver ask them. When that one ends, the others are asked on: nothing is given back.
type replica struct {
	server      *Server
	address     string
	certificate tls.Certificate
	listens     atomic.Bool
}

func addReplica(mgr manager.Manager, server *Server, p *publisher, options Options, ip netip.Addr) error {
	certificate, authority, err := readCertificate(options.CertFile, options.KeyFile)
	if err != nil {
		return err
	}
	if p.address, err = reachedAt(ip, options.Listen); err != nil {
		return err
	}
	p.authority = authority
	r := &replica{server: server, address: options.Listen, certificate: certificate}
	return errors.Join(
		mgr.AddReadyzCheck("member-api", r.isReady),
		mgr.Add(r),
		mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			server.keepPublished(ctx, p)
			return nil
		})),
	)
}

func readCertificate(certFile, keyFile string) (certificate tls.Certificate, authority []byte, err error) {
	if authority, err = os.ReadFile(certFile); err == nil {
		certificate, err = tls.LoadX509KeyPair(certFile, keyFile)
	}
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("certificate of the API of members: %w", err)
	}
	return certificate, authority, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: all replicas serve.
func (*replica) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (r *replica) Start(ctx context.Context) error {
	answering, err := r.server.listen(ctx, r.address, r.certificate)
	if err != nil {
		return err
	}
	r.listens.Store(true)
	<-ctx.Done()
	r.listens.Store(false)
	r.server.tunnels.Close()
	return answering.end(ctx)
}

// isReady implements healthz.Checker: nobody is led to a replica that does not listen.
func (r *replica) isReady(*http.Request) error {
	if !r.listens.Load() {
		return errors.New("the API of members is not served yet")
	}
	return nil
}

// renewal is how long before its end a certificate that replicas share is not good enough any more.
const renewal = 365 * 24 * time.Hour

// NewCertificate makes what replicas serve the API of members with, and its key, both as PEM.
func NewCertificate(now time.Time) (certificate, key []byte, err error) {
	return newCertificate(host(), now)
}

func newCertificate(host string, now time.Time) (certificate, key []byte, err error) {
	pair, certificate, err := selfSigned(host, now)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return nil, nil, err
	}
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// IsCertificate says whether replicas may serve with a certificate and its key, now and for a year.
func IsCertificate(certificate, key []byte, now time.Time) bool {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return false
	}
	roots := x509.NewCertPool()
	roots.AddCert(pair.Leaf)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: host(), Roots: roots, CurrentTime: now.Add(renewal)})
	return err == nil
}
