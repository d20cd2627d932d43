package members

import (
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/trellis-garden/trellis/pkg/answers"
	"github.com/trellis-garden/trellis/pkg/federation/outside"
)

// limits have room for what a fleet reads from a member; a watch is started anew every few minutes anyway.
var limits = answers.Limits{Answer: 64 << 20, Event: 16 << 20, Watch: 256 << 20}

// headerTimeout is how long a member may take to begin an answer.
const headerTimeout = 30 * time.Second

// httpClient makes connections of its own for a member, guarded against what it may answer.
func httpClient(config *rest.Config, proxyHeader http.Header, dial outside.Dial,
	g *answers.Guard) (*http.Client, error) {
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	proxy := config.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	base := utilnet.SetTransportDefaults(&http.Transport{
		DialContext: dial,
		Proxy:       proxy, ProxyConnectHeader: proxyHeader, TLSClientConfig: tlsConfig,
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: headerTimeout, MaxIdleConnsPerHost: 25,
		MaxResponseHeaderBytes: 1 << 20,
	})
	wrapped, err := rest.HTTPWrappersForConfig(config, base)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: g.Wrap(wrapped)}, nil
}
