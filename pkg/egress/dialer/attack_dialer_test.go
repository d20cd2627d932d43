package dialer_test

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/egress/dialer"
	"github.com/trellis-garden/trellis/test/seedegress"
)

// What runs for a fleet in the seed asks for addresses of the seed, and for what another fleet serves to its API
// server.
func TestAttackAddressesOfTheSeedByTheFleetsProcess(t *testing.T) {
	proxy := seedegress.Start(t, egress.Rules{Denied: []netip.Prefix{netip.MustParsePrefix("8.8.0.0/16")}},
		seedegress.World{})
	d := proxy.Dialer(t, "shoot--demo--a")
	for address, reason := range map[string]string{
		"10.1.0.5:8081": "10.0.0.0/8", "127.0.0.1:8080": "127.0.0.0/8", "169.254.169.254:80": "169.254.169.254/32",
		"168.63.129.16:80": "168.63.129.16/32", "8.8.8.8:443": "8.8.0.0/16", "[::1]:443": "::/3",
		"240.0.0.2:8443": "240.0.0.0/4", "served-apis.shoot--demo--b.svc:8443": "no such host",
		"kube-apiserver.shoot--demo--b.svc:443": "no such host", "etcd-main-client:2379": "no such host",
	} {
		var refused *dialer.RefusedError
		if _, err := d.DialContext(t.Context(), "tcp", address); !errors.As(err, &refused) ||
			!strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), address) {
			t.Errorf("%s: got %v, want %q", address, err, reason)
		}
	}
	if got := proxy.Dialled(); len(got) > 0 {
		t.Errorf("dialled %v", got)
	}
}

// Without a certificate of the proxy's authority nothing is reached: there is no other way.
func TestAttackWithoutTheCertificateOfAControlPlane(t *testing.T) {
	proxy, other := seedegress.Start(t, egress.Rules{}, seedegress.World{}),
		seedegress.Start(t, egress.Rules{}, seedegress.World{})
	files := proxy.Client(t, namespace)
	stolen := other.Client(t, namespace)
	stolen.CA = files.CA
	d, err := dialer.New(proxy.Address, stolen, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.DialContext(t.Context(), "tcp", "1.1.1.1:443"); err == nil ||
		!strings.Contains(err.Error(), "asking the egress proxy of the seed") {
		t.Errorf("by a certificate of another seed: %v", err)
	}
	if d, err = dialer.New(proxy.Address, other.Client(t, namespace), logr.Discard()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.DialContext(t.Context(), "tcp", "1.1.1.1:443"); err == nil ||
		!strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("a proxy of another seed: %v", err)
	}
	if err := os.Remove(files.Key); err != nil {
		t.Fatal(err)
	}
	if _, err := dialer.New(proxy.Address, files, logr.Discard()); err == nil ||
		!strings.Contains(err.Error(), "the client's certificate") {
		t.Errorf("without a key: %v", err)
	}
	if got := slices.Concat(proxy.Dialled(), other.Dialled()); len(got) > 0 {
		t.Errorf("dialled %v", got)
	}
}
