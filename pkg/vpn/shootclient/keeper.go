package shootclient

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

// Keeper keeps a tunnel up: it probes the seed and starts anew when there is no answer, because the shoot's end by
// itself notices a restarted server only after minutes.
type Keeper struct {
	// Endpoint is the gateway's host:port, which is resolved again for each new handshake.
	Endpoint string
	// Tunnel is what is kept up.
	Tunnel transport.ShootEnd
	// Probe sends a number through the tunnel and says whether it came back in time.
	Probe func(ctx context.Context, number uint64) bool
	// Timing says how often all this happens.
	Timing Timing
	// Log receives when the tunnel goes up and down.
	Log logr.Logger

	state monitor
	up    atomic.Bool
	// resets counts new handshakes since the tunnel was up last.
	resets int
}

// Ready returns nil while the tunnel is up.
func (k *Keeper) Ready() error {
	if !k.up.Load() {
		return fmt.Errorf("the seed does not answer through the tunnel at %s", k.Endpoint)
	}
	return nil
}

// Run keeps the tunnel up until ctx is done.
func (k *Keeper) Run(ctx context.Context) error {
	for number := uint64(1); ; number++ {
		answered := k.Probe(ctx, number)
		if ctx.Err() != nil {
			return nil
		}
		step := k.state.observe(k.Timing, answered, time.Now())
		k.report(step)
		if step.reset {
			k.reset(ctx)
		}
		if !sleep(ctx, step.wait) {
			return nil
		}
	}
}

func (k *Keeper) report(s step) {
	if k.up.Swap(s.up) == s.up {
		return
	}
	if s.up {
		k.resets = 0
		k.Log.Info("Tunnel is up", "endpoint", k.Endpoint)
	} else {
		k.Log.Info("Tunnel is down: the seed does not answer", "endpoint", k.Endpoint)
	}
}

func (k *Keeper) reset(ctx context.Context) {
	log := k.Log.WithValues("endpoint", k.Endpoint)
	endpoint, err := resolveEndpoint(ctx, k.Endpoint, k.resets)
	if err != nil {
		log.Info("Cannot resolve the gateway", "reason", err.Error())
		return
	}
	k.resets++
	log.V(1).Info("Starting a new handshake", "address", endpoint)
	if err := k.Tunnel.Reset(endpoint); err != nil {
		log.Error(err, "Cannot start a new handshake")
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
