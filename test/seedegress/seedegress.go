// Package seedegress runs the egress proxy of a seed within a test, with certificates that are made as gardenlet makes
// them.
package seedegress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/component"
	egresscomponent "github.com/trellis-garden/trellis/pkg/component/egress"
	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/egress/dialer"
	"github.com/trellis-garden/trellis/pkg/egress/proxy"
	"github.com/trellis-garden/trellis/pkg/secrets"
	"github.com/trellis-garden/trellis/pkg/tlsfiles"
)

// World is what lies around the proxy.
type World struct {
	// Resolve answers for the DNS of the seed, to which names come with a dot at the end. By default no name exists.
	Resolve func(host string) []netip.Addr
	// Servers are the addresses on this machine of servers by where they pretend to be. Of others, those of this
	// machine are dialled where they are; no attack leaves it, even if nothing keeps it out.
	Servers map[string]string
}

// Proxy runs until the end of the test.
type Proxy struct {
	// Address of the port for what users name.
	Address string

	seed client.Client
	ca   *corev1.Secret

	mutex   sync.Mutex
	dialled []string
}

// Start runs a proxy with the rules of a seed.
func Start(t *testing.T, rules egress.Rules, world World) *Proxy {
	t.Helper()
	p := &Proxy{seed: fake.NewClientBuilder().Build()}
	var err error
	if p.ca, err = egresscomponent.Authority(t.Context(), p.seed); err != nil {
		t.Fatal(err)
	}
	files := p.issue(t, egresscomponent.Namespace, secrets.CertificateConfig{
		Name: egress.Name, CertType: secrets.ServerCert, SigningCA: component.CAEgress, DNSNames: []string{"localhost"},
	})
	server := proxy.New(proxy.Config{
		TLS: files, Rules: rules, Log: logr.Discard(),
		Resolve: func(_ context.Context, _, host string) ([]netip.Addr, error) {
			if world.Resolve != nil {
				if found := world.Resolve(host); len(found) > 0 {
					return found, nil
				}
			}
			return nil, &net.DNSError{Err: "no such host", Name: host}
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			p.note(address)
			if there, found := world.Servers[address]; found {
				address = there
			}
			if asked, err := netip.ParseAddrPort(address); err != nil || !asked.Addr().IsLoopback() {
				return nil, fmt.Errorf("in this test nobody is at %s", address)
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	})
	cluster, outside := listen(t), listen(t)
	_, port, err := net.SplitHostPort(outside.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p.Address = net.JoinHostPort("localhost", port)
	// Tests start fleets in their clean-up, too, when their context has ended.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, cluster, outside) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return p
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// Authorities are those that the manager of a control plane's secrets is given in this seed.
func (p *Proxy) Authorities() map[string]*corev1.Secret {
	return map[string]*corev1.Secret{component.CAEgress: p.ca}
}

// Client returns the certificate of what extensions run for the control plane of a namespace.
func (p *Proxy) Client(t *testing.T, namespace string) tlsfiles.Files {
	t.Helper()
	return p.issue(t, namespace, egresscomponent.ClientCertificate(namespace))
}

// Dialer connects as what extensions run for the control plane of a namespace.
func (p *Proxy) Dialer(t *testing.T, namespace string) *dialer.Dialer {
	t.Helper()
	d, err := dialer.New(p.Address, p.Client(t, namespace), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (p *Proxy) issue(t *testing.T, namespace string, config secrets.CertificateConfig) tlsfiles.Files {
	t.Helper()
	manager, err := secrets.New(t.Context(), p.seed, namespace, secrets.Options{Authorities: p.Authorities()})
	if err != nil {
		t.Fatal(err)
	}
	secret, err := manager.Generate(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write := func(key string) string {
		path := filepath.Join(folder, key)
		if err := os.WriteFile(path, secret.Data[key], 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return tlsfiles.Files{
		Cert: write(secrets.DataKeyCertificate), Key: write(secrets.DataKeyPrivateKey),
		CA: write(secrets.DataKeyCertificateCA),
	}
}

func (p *Proxy) note(address string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.dialled = append(p.dialled, address)
}

// Dialled are the addresses that the proxy connected to, in order.
func (p *Proxy) Dialled() []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return append([]string{}, p.dialled...)
}
