package reservation

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

var errFull = errors.New("full")

// replicas returns the reservations of two servers with one etcd.
func replicas(t *testing.T) [2]*Reservations {
	t.Helper()
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.UnsafeNoFsync = t.TempDir(), "fatal", true
	any := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config.ListenClientUrls, config.ListenPeerUrls = []url.URL{any}, []url.URL{any}
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(etcd.Close)
	<-etcd.Server.ReadyNotify()
	var made [2]*Reservations
	for i := range made {
		storage := storagebackend.Config{
			Prefix: "/registry", Transport: storagebackend.TransportConfig{
				ServerList: []string{etcd.Clients[0].Addr().String()},
			},
		}
		if made[i], err = New(storage); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = made[i].Close() })
	}
	return made
}

// TestOnlyTheAllowedNumberPasses: requests at two servers take from a limit, without any coordination but claims. What
// is stored is counted when a request ends, as a server would.
func TestOnlyTheAllowedNumberPasses(t *testing.T) {
	const limit, requests = 5, 40
	servers := replicas(t)
	var stored, passed atomic.Int64
	var group sync.WaitGroup
	for i := range requests {
		group.Go(func() {
			server := servers[i%2]
			ctx, end := server.Begin(context.Background())
			defer end()
			err := server.Reserve(ctx, "quota", Claim{Owner: fmt.Sprint("shoot-", i)},
				func(_ context.Context, others []Claim) error {
					if int(stored.Load())+len(others) >= limit {
						return errFull
					}
					return nil
				})
			switch {
			case err == nil:
				passed.Add(1)
				stored.Add(1)
			case !errors.Is(err, errFull):
				t.Error(err)
			}
		})
	}
	group.Wait()
	// A request may be refused while another's claim and stored object are both counted, never let through.
	if got := passed.Load(); got > limit || got == 0 {
		t.Errorf("%d requests passed, want at most %d", got, limit)
	}
}

func TestClaims(t *testing.T) {
	servers := replicas(t)
	yes := func(context.Context, []Claim) error { return nil }
	seen := func(scope string) (claims []Claim) {
		t.Helper()
		err := servers[1].Look(context.Background(), scope, func(_ context.Context, others []Claim) error {
			claims = others
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return claims
	}
	ctx, end := servers[0].Begin(context.Background())
	claim := Claim{Owner: "garden-demo/member1", Value: "a.example"}
	if err := servers[0].Reserve(ctx, "domains", claim, yes); err != nil {
		t.Fatal(err)
	}
	if got := seen("domains"); len(got) != 1 || got[0] != claim {
		t.Errorf("another server sees %v, want %v", got, claim)
	}
	if got := seen("domains2"); len(got) != 0 {
		t.Errorf("another scope has %v", got)
	}
	err := servers[0].Reserve(ctx, "domains", claim, func(_ context.Context, others []Claim) error {
		if len(others) > 0 {
			return errFull
		}
		return nil
	})
	if err != nil {
		t.Errorf("a request is in its own way: %v", err)
	}
	end()
	if got := seen("domains"); len(got) != 0 {
		t.Errorf("after the request there are %v", got)
	}
	if err := servers[0].Reserve(context.Background(), "domains", claim, yes); err == nil {
		t.Error("a claim without a request would never end")
	}
}

func TestWhatIsRefusedClaimsNothing(t *testing.T) {
	servers := replicas(t)
	ctx, end := servers[0].Begin(context.Background())
	defer end()
	err := servers[0].Reserve(ctx, "quota", Claim{Owner: "a"}, func(context.Context, []Claim) error { return errFull })
	if !errors.Is(err, errFull) {
		t.Errorf("error = %v", err)
	}
	_ = servers[1].Look(ctx, "quota", func(_ context.Context, others []Claim) error {
		if len(others) > 0 {
			t.Errorf("claims = %v", others)
		}
		return nil
	})
}
