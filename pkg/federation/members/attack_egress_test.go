package members

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/test/seedegress"
)

const publicAddress = "93.184.216.34"

// throughEgress is a connection to a member at an address, by the egress proxy of a seed.
func throughEgress(t *testing.T, proxy *seedegress.Proxy, endpoint, proxyURL string) *Member {
	t.Helper()
	cluster := clusterWith(proxyURL, nil)
	cluster.Name, cluster.Spec.APIEndpoint, cluster.Spec.InsecureSkipTLSVerification = "m", endpoint, true
	m, err := NewPool(func(string, client.Object) {},
		proxy.Dialer(t, "shoot--demo--fleet").DialContext).Refresh(t.Context(), cluster, secretWithToken())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.close)
	return m
}

func ready(t *testing.T, asked *atomic.Int32) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte("ok"))
	}))
	t.Cleanup(server.Close)
	return server
}

// Who writes Clusters names addresses of the seed, also as the proxy on the way to a member. The Cluster's condition
// says what was refused.
func TestAttackMembersInTheSeed(t *testing.T) {
	var asked atomic.Int32
	inside := ready(t, &asked)
	proxy := seedegress.Start(t, egress.Rules{}, seedegress.World{
		Resolve: func(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr("10.1.0.5")} },
		Servers: map[string]string{"10.1.0.5:443": inside.Listener.Addr().String()},
	})
	for name, m := range map[string]*Member{
		"address": throughEgress(t, proxy, "https://10.1.0.5", ""),
		"name":    throughEgress(t, proxy, "https://kube-apiserver.shoot--demo--other.svc", ""),
		"proxy":   throughEgress(t, proxy, "https://member.example.com", "http://inside.example.com:443"),
		"local":   throughEgress(t, proxy, inside.URL, ""),
	} {
		err := m.Probe(t.Context())
		if err == nil || !strings.Contains(err.Error(), "the egress proxy of the seed does not connect to") ||
			!strings.Contains(err.Error(), "an operator of the seed can allow it") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if asked.Load() > 0 || len(proxy.Dialled()) > 0 {
		t.Errorf("asked %d times, dialled %v", asked.Load(), proxy.Dialled())
	}
}

// A member's name leads to the member when it is decided about, and into the seed a moment later.
func TestAttackMemberChangesItsAddress(t *testing.T) {
	var askedMember, askedInside atomic.Int32
	var changed atomic.Bool
	member, inside := ready(t, &askedMember), ready(t, &askedInside)
	proxy := seedegress.Start(t, egress.Rules{}, seedegress.World{
		Resolve: func(string) []netip.Addr {
			if changed.Load() {
				return []netip.Addr{netip.MustParseAddr("10.1.0.5")}
			}
			return []netip.Addr{netip.MustParseAddr(publicAddress)}
		},
		Servers: map[string]string{
			publicAddress + ":443": member.Listener.Addr().String(), "10.1.0.5:443": inside.Listener.Addr().String(),
		},
	})
	m := throughEgress(t, proxy, "https://member.example.com", "")
	if err := m.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	changed.Store(true)
	// A client may have made a connection in advance, which still leads to the member: it ends with the next attempt.
	var err error
	for attempt := 0; err == nil && attempt < 10; attempt++ {
		member.CloseClientConnections()
		err = m.Probe(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "10.1.0.5 is in 10.0.0.0/8") {
		t.Errorf("after the name has changed: %v", err)
	}
	if askedInside.Load() > 0 || slices.Contains(proxy.Dialled(), "10.1.0.5:443") {
		t.Errorf("asked %d times, dialled %v", askedInside.Load(), proxy.Dialled())
	}
}

// A member outside sends the fleet to an address in the seed.
func TestAttackMemberRedirectsIntoTheSeed(t *testing.T) {
	var asked atomic.Int32
	inside := ready(t, &asked)
	member := httptest.NewTLSServer(http.RedirectHandler("https://10.1.0.5/", http.StatusTemporaryRedirect))
	t.Cleanup(member.Close)
	proxy := seedegress.Start(t, egress.Rules{}, seedegress.World{
		Servers: map[string]string{
			publicAddress + ":443": member.Listener.Addr().String(), "10.1.0.5:443": inside.Listener.Addr().String(),
		},
	})
	if err := throughEgress(t, proxy, "https://"+publicAddress, "").Probe(t.Context()); err == nil || asked.Load() > 0 {
		t.Errorf("got %v, asked %d times", err, asked.Load())
	}
}
