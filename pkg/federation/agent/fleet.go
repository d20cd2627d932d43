package agent

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// way to the fleet, with a certificate and an authority that may be replaced while it is used.
type way struct {
	config      *rest.Config
	certificate atomic.Pointer[tls.Certificate]
	dialer      *connrotation.Dialer
	// invited is the fleet's address, without what the agent is known by.
	invited *rest.Config
	trusted atomic.Pointer[trust]
}

// trust is in an authority that signs the fleet's certificate.
type trust struct {
	authority []byte
	transport *http.Transport
	// upgrades speaks HTTP/1.1, which knows them.
	upgrades *http.Transport
}

// newWay keeps of the invitation where the fleet is and which authority its certificate is from.
func newWay(invited *rest.Config) (*way, error) {
	w := &way{
		invited: rest.AnonymousClientConfig(invited),
		dialer: connrotation.NewDialer((&net.Dialer{
			Timeout: 30 * time.Second, KeepAlive: 30 * time.Second,
		}).DialContext),
	}
	trusted, err := w.trusting(invited.CAData)
	if err != nil {
		return nil, fmt.Errorf("the fleet's kubeconfig in the invitation: %w", err)
	}
	w.trusted.Store(trusted)
	// The fleet says itself how much it can take (priority and fairness).
	w.config = &rest.Config{
		Host: w.invited.Host, APIPath: w.invited.APIPath, Transport: w, QPS: -1, UserAgent: "trellis-federation-agent",
	}
	return w, nil
}

// pins tells whether the invitation says which authority the fleet's certificate is from.
func (w *way) pins() bool { return !w.invited.Insecure && len(w.invited.CAData) > 0 }

// trusting makes what leads to a fleet whose certificate is from an authority.
func (w *way) trusting(authority []byte) (*trust, error) {
	config := rest.CopyConfig(w.invited)
	config.CAData = authority
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	if tlsConfig == nil {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	tlsConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if certificate := w.certificate.Load(); certificate != nil {
			return certificate, nil
		}
		return &tls.Certificate{}, nil
	}
	proxy := config.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	transport := func() *http.Transport {
		return &http.Transport{
			Proxy: proxy, TLSClientConfig: tlsConfig.Clone(), TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConnsPerHost: 25, DialContext: w.dialer.DialContext,
		}
	}
	upgrades := transport()
	upgrades.IdleConnTimeout = 90 * time.Second
	return &trust{authority, utilnet.SetTransportDefaults(transport()), upgrades}, nil
}

// upgrading is the way for requests that change the protocol.
type upgrading struct{ *way }

// RoundTrip implements http.RoundTripper.
func (u upgrading) RoundTrip(request *http.Request) (*http.Response, error) {
	return u.trusted.Load().upgrades.RoundTrip(request)
}

// RoundTrip implements http.RoundTripper.
func (w *way) RoundTrip(request *http.Request) (*http.Response, error) {
	return w.trusted.Load().transport.RoundTrip(request)
}

// knock at the fleet. An error tells that its certificate is not from the authority, or that it is away; the status,
// what it takes the agent for.
func (w *way) knock(ctx context.Context, t *trust) (status int, err error) {
	server, _, err := rest.DefaultServerUrlFor(w.invited)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.JoinPath("version").String(), nil)
	if err != nil {
		return 0, err
	}
	response, err := t.transport.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	defer t.transport.CloseIdleConnections()
	return response.StatusCode, response.Body.Close()
}

// use a certificate from now on: connections are made anew, since servers look at certificates when these begin.
func (w *way) use(certificate *tls.Certificate) {
	if w.certificate.Swap(certificate) != nil {
		w.dialer.CloseAll()
	}
}

// trust an authority from now on, and no other: connections are made anew, since it is looked at when these begin.
func (w *way) trust(t *trust) {
	w.trusted.Store(t)
	w.dialer.CloseAll()
}

// within bounds one request of the agent's own.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 15*time.Second)
}
