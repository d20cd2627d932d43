package vpn_test

import (
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestShootsWithTheSameNetworksBehindOneGateway(t *testing.T) {
	gateway := newTestGateway(t)
	member1, member2 := newTestShoot(t, gateway, "member1"), newTestShoot(t, gateway, "member2")
	gateway.serve(member1, member2)

	for _, shoot := range []*testShoot{member1, member2} {
		for _, address := range []netip.Addr{podAddress, serviceAddress} {
			if got := shoot.eventuallyGet(t, address); got != shoot.name {
				t.Errorf("GET http://%s through the tunnel of %s was answered by %q", address, shoot.name, got)
			}
		}
	}
}

func TestTrafficResumesAfterRestart(t *testing.T) {
	cases := map[string]func(t *testing.T, gateway *testGateway, shoot *testShoot){
		"of the seed server":  func(t *testing.T, _ *testGateway, shoot *testShoot) { shoot.restartServer(t) },
		"of the shoot client": func(t *testing.T, _ *testGateway, shoot *testShoot) { shoot.restartClient(t) },
		"of the gateway":      func(t *testing.T, gateway *testGateway, _ *testShoot) { gateway.restart(t) },
		"of all of them": func(t *testing.T, gateway *testGateway, shoot *testShoot) {
			gateway.restart(t)
			shoot.restartServer(t)
			shoot.restartClient(t)
		},
	}
	for name, restart := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gateway := newTestGateway(t)
			shoot := newTestShoot(t, gateway, "member1")
			gateway.serve(shoot)
			shoot.eventuallyGet(t, podAddress)

			restart(t, gateway, shoot)

			if got := shoot.eventuallyGet(t, podAddress); got != "member1" {
				t.Errorf("after the restart the answer came from %q", got)
			}
		})
	}
}

// Given a shoot behind an address translator, when the translator forgets its state, then the tunnel goes on under the
// new address without a new handshake.
func TestTunnelFollowsAnAddressTranslator(t *testing.T) {
	gateway := newTestGateway(t)
	translator := newTestTranslator(t, gateway.address)
	shoot := newTestShoot(t, gateway, "member1", func(s *testShoot) {
		s.endpoint = translator.address
		s.timing.Failures = 1 << 30 // never starts a handshake by itself
	})
	gateway.serve(shoot)
	shoot.eventuallyGet(t, podAddress)
	before := shoot.lastHandshake(t)

	translator.forget(t)

	if got := shoot.eventuallyGet(t, podAddress); got != "member1" {
		t.Errorf("got %q", got)
	}
	if after := shoot.lastHandshake(t); after != before {
		t.Error("there was a new handshake")
	}
}

func TestConnectSaysWhichEndFailed(t *testing.T) {
	gateway := newTestGateway(t)
	shoot := newTestShoot(t, gateway, "member1")

	status, text := shoot.connectStatus(t, "10.3.0.5:80")
	if status != http.StatusGatewayTimeout || !strings.HasPrefix(text, "tunnel: ") {
		t.Errorf("without a handshake: got %d %q, want 504 about the tunnel", status, text)
	}
	gateway.serve(shoot)
	shoot.eventuallyGet(t, podAddress)

	cases := []struct {
		address string
		status  int
		prefix  string
	}{
		{"10.3.0.5:81", http.StatusBadGateway, "shoot: connecting to 10.3.0.5:81: "},
		{
			"172.16.0.1:80", http.StatusForbidden,
			"172.16.0.1 is in none of the shoot's networks (10.3.0.0/16, 10.4.0.0/16",
		},
		{"webhook.demo.svc:443", http.StatusBadGateway, `seed: "webhook.demo.svc" is a name`},
		{"10.3.0.5:0", http.StatusBadRequest, `address "10.3.0.5:0" has no port`},
	}
	for _, c := range cases {
		if status, text := shoot.connectStatus(t, c.address); status != c.status || !strings.HasPrefix(text, c.prefix) {
			t.Errorf("CONNECT %s: got %d %q, want %d %q", c.address, status, text, c.status, c.prefix)
		}
	}
}

func TestNamesAreResolvedByTheShootsDNS(t *testing.T) {
	gateway := newTestGateway(t)
	shoot := newTestShoot(t, gateway, "member1", func(s *testShoot) { s.dns = serviceAddress })
	gateway.serve(shoot)
	shoot.eventuallyGet(t, podAddress)

	if status, text := shoot.connectStatus(t, "other.demo.svc:80"); status != http.StatusBadGateway ||
		!strings.Contains(text, "no such host") {
		t.Errorf("an unknown name: got %d %q", status, text)
	}
	client := http.Client{Transport: shoot.transport(), Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	response, err := client.Get("http://webhook.demo.svc/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); string(body) != "member1" || err != nil {
		t.Errorf("got %q, %v", body, err)
	}
}
