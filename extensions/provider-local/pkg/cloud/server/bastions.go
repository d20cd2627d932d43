package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/jump"
)

// sshPort is that of bastions, and of machines behind them.
const sshPort = 22

// listenAgainAfter is how long a bastion rests whose listener has failed.
const listenAgainAfter = time.Second

// BastionHost is what bastions need of the node.
type BastionHost interface {
	// ListenBastion makes the address one of the node and listens at its port for SSH.
	ListenBastion(ctx context.Context, address netip.Addr) (net.Listener, error)
	// RemoveAddress takes such an address away; one that is not there is no error.
	RemoveAddress(address netip.Addr) error
	// DialMachine connects with a machine through the bridge of its network, and through nothing else.
	DialMachine(ctx context.Context, bridge string, machine netip.AddrPort) (net.Conn, error)
}

// bastions owns the bastions. What is asked for is written down first, and made true again at every start.
type bastions struct {
	mu       sync.Mutex
	host     BastionHost
	networks *networks
	store    store[api.Bastion]
	// pool has the public addresses; without it there are no bastions.
	pool   netip.Prefix
	log    logr.Logger
	byName map[string]*runningBastion
}

// runningBastion is a bastion with what serves it.
type runningBastion struct {
	api.Bastion
	// stop ends it and all that leads through it, and waits for that.
	stop func()
}

func newBastions(stateDir string, pool netip.Prefix, host BastionHost, networks *networks, log logr.Logger) *bastions {
	return &bastions{
		host: host, networks: networks, pool: pool, log: log.WithName("bastion"), byName: map[string]*runningBastion{},
		store: store[api.Bastion]{dir: filepath.Join(stateDir, "state", "bastions"), secret: true},
	}
}

// restore loads what was written down and serves it.
func (b *bastions) restore() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	loaded, err := b.store.load()
	if err != nil {
		return fmt.Errorf("loading the bastions: %w", err)
	}
	for name, bastion := range loaded {
		if err := b.start(bastion, true); err != nil {
			b.log.Error(err, "Not served", "bastion", name)
		}
	}
	return nil
}

// close ends all of them; they are served again after the next start.
func (b *bastions) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, running := range b.byName {
		running.stop()
	}
	clear(b.byName)
}

// put creates the bastion, or changes it, which ends what leads through it. Its address stays.
func (b *bastions) put(wanted api.Bastion) (api.Bastion, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := wanted.Validate(); err != nil {
		return api.Bastion{}, fmt.Errorf("%w: %w", errInvalid, err)
	}
	if _, exists := b.networks.get(wanted.Network); !exists {
		return api.Bastion{}, fmt.Errorf("%w: bastion %s: there is no network %q", errConflict, wanted.Name,
			wanted.Network)
	}
	address, err := b.addressFor(wanted.Name)
	if err != nil {
		return api.Bastion{}, err
	}
	wanted.Address = address.String()
	running, exists := b.byName[wanted.Name]
	if exists && reflect.DeepEqual(running.Bastion, wanted) {
		return told(wanted), nil
	}
	if err := b.store.put(wanted.Name, wanted); err != nil {
		return api.Bastion{}, fmt.Errorf("bastion %s: %w", wanted.Name, err)
	}
	if exists {
		running.stop()
		delete(b.byName, wanted.Name)
	}
	return told(wanted), b.start(wanted, false)
}

// told is what clients are told of a bastion: all but its key.
func told(bastion api.Bastion) api.Bastion {
	bastion.HostKey = nil
	return bastion
}

// addressFor is the address that a bastion has, or else a free one. Those that are written down but not served count.
func (b *bastions) addressFor(name string) (netip.Addr, error) {
	stored, err := b.store.load()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("loading the bastions: %w", err)
	}
	if own, exists := stored[name]; exists {
		return netip.ParseAddr(own.Address)
	}
	taken := map[string]bool{}
	for _, other := range stored {
		taken[other.Address] = true
	}
	for address := b.pool.Masked().Addr(); b.pool.Contains(address); address = address.Next() {
		if !taken[address.String()] {
			return address, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("%w: no address is left for bastion %s: the cloud has %d, of %q; delete others, "+
		"or give the cloud more", errConflict, name, len(taken), b.pool)
}

// remove removes a bastion and ends what leads through it.
func (b *bastions) remove(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.drop(name)
}

// removeOf removes the bastions of a network that goes.
func (b *bastions) removeOf(network string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	stored, err := b.store.load()
	if err != nil {
		return fmt.Errorf("loading the bastions: %w", err)
	}
	var errs []error
	for name, bastion := range stored {
		if bastion.Network == network {
			errs = append(errs, b.drop(name))
		}
	}
	return errors.Join(errs...)
}

func (b *bastions) drop(name string) error {
	if api.ValidateName(name) != nil {
		return nil // It could not have been made, and would be a path.
	}
	stored, err := b.store.load()
	if err != nil {
		return fmt.Errorf("loading the bastions: %w", err)
	}
	if running, exists := b.byName[name]; exists {
		running.stop()
		delete(b.byName, name)
	}
	// One that is written down may have its address on the node without being served.
	if address, err := netip.ParseAddr(stored[name].Address); err == nil {
		if err := b.host.RemoveAddress(address); err != nil {
			return fmt.Errorf("bastion %s: %w", name, err)
		}
	}
	if err := b.store.remove(name); err != nil {
		return fmt.Errorf("bastion %s: %w", name, err)
	}
	return nil
}

// start serves a bastion. If its address is not to be had now, that is an error, or tried again by who is patient.
func (b *bastions) start(bastion api.Bastion, patient bool) error {
	options, err := b.optionsFor(bastion)
	if err != nil {
		return err
	}
	address, err := netip.ParseAddr(bastion.Address)
	if err != nil {
		return fmt.Errorf("bastion %s: %w", bastion.Name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	listener, err := b.host.ListenBastion(ctx, address)
	if err != nil && !patient {
		cancel()
		return fmt.Errorf("bastion %s: %w", bastion.Name, err)
	}
	if err != nil {
		listener = nil
	}
	var serving sync.WaitGroup
	serving.Go(func() { b.serve(ctx, listener, address, options) })
	b.byName[bastion.Name] = &runningBastion{bastion, func() { cancel(); serving.Wait() }}
	return nil
}

// serve serves a listener, and another one whenever it fails or there is none, until the context ends.
func (b *bastions) serve(ctx context.Context, listener net.Listener, address netip.Addr, options jump.Options) {
	for {
		var err error
		if listener == nil {
			listener, err = b.host.ListenBastion(ctx, address)
		}
		if err == nil {
			err = jump.Serve(ctx, listener, options)
		}
		if ctx.Err() != nil {
			return
		}
		options.Log.Error(err, "Listening again")
		listener = nil
		select {
		case <-ctx.Done():
		case <-time.After(listenAgainAfter):
		}
	}
}

func (b *bastions) optionsFor(bastion api.Bastion) (jump.Options, error) {
	access := bastion.Access()
	hostKey, errHost := access.Signer()
	userKey, errUser := access.PublicKey()
	ranges, errRanges := bastion.Ranges()
	if err := errors.Join(errHost, errUser, errRanges); err != nil {
		return jump.Options{}, fmt.Errorf("bastion %s: %w", bastion.Name, err)
	}
	return jump.Options{
		HostKey: hostKey, AuthorizedKey: userKey, From: ranges.Contains,
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return b.dial(ctx, bastion.Network, to)
		},
		Log: b.log.WithValues("bastion", bastion.Name),
	}, nil
}

var errNoMachine = errors.New("this bastion leads to port 22 of the machines of its shoot only")

// dial connects with a machine of the network as it is now.
func (b *bastions) dial(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	known, exists := b.networks.get(network)
	if !exists || to.Port() != sshPort || !mayBeMachine(known, to.Addr()) {
		return nil, errNoMachine
	}
	return b.host.DialMachine(ctx, known.Bridge, to)
}

// mayBeMachine tells whether an address of the network is for machines: its first one is the network's, the second the
// node's, the last one that of all.
func mayBeMachine(network api.Network, address netip.Addr) bool {
	subnet, err := netip.ParsePrefix(network.CIDR)
	if err != nil || !subnet.Contains(address) || !subnet.Contains(address.Next()) {
		return false
	}
	return address != subnet.Masked().Addr() && address != gatewayOf(subnet) && address.String() != network.Gateway
}
