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

// way to the fleet, with a certificate that may be replaced while it is used.
type way struct {
	config      *rest.Config
	certificate atomic.Pointer[tls.Certificate]
	dialer      *connrotation.Dialer
}

// newWay keeps of the invitation where the fleet is and which authority its certificate is from.
func newWay(invited *rest.Config) (*way, error) {
	bare := rest.AnonymousClientConfig(invited)
	tlsConfig, err := rest.TLSConfigFor(bare)
	if err != nil {
		return nil, fmt.Errorf("the fleet's kubeconfig in the invitation: %w", err)
	}
	if tlsConfig == nil {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	w := &way{dialer: connrotation.NewDialer((&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext)}
	tlsConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if certificate := w.certificate.Load(); certificate != nil {
			return certificate, nil
		}
		return &tls.Certificate{}, nil
	}
	proxy := bare.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	transport := utilnet.SetTransportDefaults(&http.Transport{
		Proxy: proxy, TLSClientConfig: tlsConfig, TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 25, DialContext: w.dialer.DialContext,
	})
	// The fleet says itself how much it can take (priority and fairness).
	w.config = &rest.Config{Host: bare.Host, APIPath: bare.APIPath, Transport: transport, QPS: -1, UserAgent: "trellis-federation-agent"}
	return w, nil
}

// use a certificate from now on: connections are made anew, since servers look at certificates when these begin.
func (w *way) use(certificate *tls.Certificate) {
	if w.certificate.Swap(certificate) != nil {
		w.dialer.CloseAll()
	}
}

// within bounds one request of the agent's own.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 15*time.Second)
}
