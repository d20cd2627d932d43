//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// throughTheFleet leads to member1 by the fleet: through the gateway, and through the egress proxy of the seed.
const throughTheFleet = "/apis/cluster.karmada.io/v1alpha1/clusters/member1/proxy/version"

// A gateway that is killed while strangers take what they can of it comes back for its clients: the APIs of clusters
// answer, and so do the tunnels that lead through it.
func TestAttackWhileTheGatewayIsKilled(t *testing.T) {
	l := open(t)
	m1, fleet := l.shoot(t, "member1"), l.fleet(t)
	opened := holdHalfSentHellos(t, gatewayOf(t, m1), 200)
	for range 2 {
		before := opened.Load()
		l.killProcess(t, "garden", "app=gateway", "vpn")
		m1.eventually(t, 2*time.Minute, contains(" Ready "), "get", "nodes", "--no-headers")
		m1.eventually(t, 2*time.Minute, contains("metrics-server"), "-n", "kube-system", "logs", "-l",
			"k8s-app=metrics-server", "--tail=5", "--prefix")
		fleet.eventually(t, 2*time.Minute, contains("gitVersion"), "get", "--raw", throughTheFleet)
		if opened.Load() == before {
			t.Error("the strangers have given up")
		}
	}
}

// gatewayOf is where the gateway is that leads to a cluster.
func gatewayOf(t *testing.T, k kubectl) string {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", k.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	return server.Host
}

// holdHalfSentHellos has so many strangers begin a hello, and begin another when the gateway ends it, until the test
// ends. It counts them.
func holdHalfSentHellos(t *testing.T, gateway string, strangers int) *atomic.Int64 {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	opened := &atomic.Int64{}
	dialer := net.Dialer{Timeout: 5 * time.Second}
	stranger := func() {
		conn, err := dialer.DialContext(ctx, "tcp", gateway)
		if err != nil {
			return
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		opened.Add(1)
		_, _ = conn.Write([]byte{22, 3, 1, 0x40, 0, 1}) // the beginning of a long record of TLS
		_, _ = conn.Read(make([]byte, 1))               // until the gateway ends it
	}
	for range strangers {
		all.Go(func() {
			for ctx.Err() == nil {
				stranger()
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond): // a bound to what the strangers do
				}
			}
		})
	}
	return opened
}

// An egress proxy that is killed leaves no other way out: what it refuses is reached at no moment, and what it allows
// works again.
func TestAttackWhileTheEgressProxyIsKilled(t *testing.T) {
	l := open(t)
	fleet := l.fleet(t)
	path := l.pathIntoTheSeed(t, fleet)
	ctx, cancel := context.WithCancel(t.Context())
	var attacker sync.WaitGroup
	attacker.Go(func() {
		for ctx.Err() == nil {
			if said, err := fleet.try(ctx, "", "get", "--raw", path); err == nil {
				t.Errorf("a pod of the seed answered the fleet: %q", said)
				return
			}
		}
	})
	l.killProcess(t, "garden", "app=egress", "vpn")
	fleet.eventually(t, 2*time.Minute, contains("gitVersion"), "get", "--raw", throughTheFleet)
	eventually(t, time.Minute, func(ctx context.Context) error {
		if _, err := fleet.try(ctx, "", "get", "--raw", path); err == nil || !strings.Contains(err.Error(), "403") {
			return fmt.Errorf("got %v, want 403 of the egress proxy", err)
		}
		return nil
	})
	cancel()
	attacker.Wait()
}
