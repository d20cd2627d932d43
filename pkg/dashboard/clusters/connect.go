package clusters

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/trellis-garden/trellis/pkg/kubeconfig"
)

// Endpoint says at which address hosts of a domain are reached, such as those of shoots through the gateway of a seed.
type Endpoint struct {
	// Domain that the hosts lie in, or are.
	Domain string `json:"domain"`
	// Address as HOST:PORT.
	Address string `json:"address"`
}

// identity are headers that say who asks, or that a proxy has to leave out.
var identity = []string{"Authorization", "Cookie", "Proxy-Authorization"}

// transport shows a credential to one API server.
type transport struct {
	base  http.RoundTripper
	token string
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name := range r.Header {
		if strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-") {
			r.Header.Del(name)
		}
	}
	for _, name := range identity {
		r.Header.Del(name)
	}
	r.Header.Set("User-Agent", userAgent)
	if t.token != "" {
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	return t.base.RoundTrip(r)
}

// dialer connects through endpoints.
func dialer(endpoints []Endpoint) *http.Transport {
	direct := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	result := &http.Transport{
		ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 60 * time.Second,
		IdleConnTimeout: 90 * time.Second, MaxIdleConnsPerHost: 8,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second,
			// What a cluster sends and nobody reads yet is held; the default would be 4 MiB for each request.
			MaxReceiveBufferPerStream: 128 << 10,
		},
	}
	result.DialContext = direct.DialContext
	if len(endpoints) > 0 {
		result.DialContext = routed(direct, endpoints)
	}
	return result
}

// withTLS shows a client certificate, if there is one, to servers of an authority.
func withTLS(endpoints []Endpoint, config *tls.Config) *http.Transport {
	result := dialer(endpoints)
	result.TLSClientConfig = config
	return result
}

// serverTLS trusts an authority, or those of the system if none is given.
func serverTLS(ca []byte, serverName string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: serverName}
	if len(ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("the certificate authority has no certificate in PEM")
		}
	}
	return config, nil
}

// connectionOf reads a kubeconfig that the garden gave, and connects as it says.
func connectionOf(raw []byte, endpoints []Endpoint) (*url.URL, *transport, error) {
	config, err := kubeconfig.Contained(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("the garden answered with a kubeconfig that cannot be used: %w", err)
	}
	base, err := ServerURL(config.Host)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case config.Insecure:
		return nil, nil, errors.New("the garden answered with a kubeconfig that does not say how to know the server")
	case config.Impersonate.UserName != "" || config.Proxy != nil || config.Username != "":
		// Without what is not done here, the rest of it would be another user, or reach another server.
		return nil, nil, errors.New("the garden answered with a kubeconfig that acts as another user, takes a proxy, " +
			"or has a password")
	}
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, nil, err
	}
	return base, &transport{base: withTLS(endpoints, tlsConfig), token: config.BearerToken}, nil
}

// ServerURL reads the address of an API server: https, a host, no user, nothing behind the path.
func ServerURL(text string) (*url.URL, error) {
	result, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("the server is no URL")
	case result.Scheme != "https" || result.Host == "" || result.User != nil || result.RawQuery != "" ||
		result.Fragment != "":
		return nil, fmt.Errorf("server %s: it must be https://HOST[:PORT]", result.Redacted())
	}
	result.Host = strings.ToLower(result.Host)
	if result.Port() == "" {
		result.Host = net.JoinHostPort(result.Hostname(), "443")
	}
	result.Path, result.RawPath = strings.TrimRight(result.Path, "/"), ""
	return result, nil
}
