package federation

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/vishvananda/netlink"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetextension "github.com/trellis-garden/trellis/extensions/federation/pkg/fleet"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	"github.com/trellis-garden/trellis/pkg/federation/crds"
)

// mostWorlds is how many tests run side by side. They wait most of the time, so that four of them have work for two
// cores.
const mostWorlds = 4

// worlds is all that tests share. Nothing of a world is seen from another one.
var worlds *pool

// world is a fleet with two members, which the test that has it may change as it likes. It leaves it as it was, so that
// the next test need not wait for new API servers; no test has it at the same time.
type world struct {
	servers     *apiServers
	fleetConfig *rest.Config
	fleet       client.Client
	member      map[string]client.Client
	// lines are what the fleet reaches its members by.
	lines map[string]*line
	// created is what tests made.
	created *kindRecord
	// federations is how many run.
	federations atomic.Int32
	address     func() (string, error)
}

// newWorld has the test run beside others, in a world of its own.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w, err := worlds.take()
	if err != nil {
		t.Fatalf("starting a world: %v", err)
	}
	t.Cleanup(func() { worlds.giveBack(w, t.Failed()) })
	return w
}

// pool starts worlds when tests need them, and keeps them for later tests.
type pool struct {
	binary, etcd string
	// egress are the files of a seed's egress proxy, which are the same in all worlds.
	egress map[string][]byte
	// places bounds how many worlds there are.
	places chan struct{}

	mu   sync.Mutex
	idle []*world
	// bridge has the addresses of worlds that need one.
	bridge *netlink.Bridge
}

func newPool(binary, etcd string) (*pool, error) {
	files, err := deployedFiles()
	return &pool{binary: binary, etcd: etcd, egress: files, places: make(chan struct{}, mostWorlds)}, err
}

func (p *pool) take() (*world, error) {
	p.places <- struct{}{}
	if w := p.takeIdle(); w != nil {
		return w, nil
	}
	w, err := p.start()
	if err != nil {
		<-p.places
	}
	return w, err
}

func (p *pool) takeIdle() *world {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	w := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	return w
}

// giveBack what a test had. Nobody knows how a test that has failed left it.
func (p *pool) giveBack(w *world, failed bool) {
	if failed {
		w.servers.stop()
	} else {
		p.mu.Lock()
		p.idle = append(p.idle, w)
		p.mu.Unlock()
	}
	<-p.places
}

// close ends what is left when all tests have ended, and says what they left behind.
func (p *pool) close() error {
	errs := make([]error, len(p.idle))
	var group sync.WaitGroup
	for i, w := range p.idle {
		group.Go(func() {
			errs[i] = w.nothingIsLeft()
			w.servers.stop()
		})
	}
	group.Wait()
	if p.bridge != nil {
		errs = append(errs, netlink.LinkDel(p.bridge))
	}
	return errors.Join(errs...)
}

func (p *pool) start() (*world, error) {
	servers, err := newAPIServers(p.binary, p.etcd)
	if err != nil {
		return nil, err
	}
	w := &world{
		servers: servers, member: map[string]client.Client{}, lines: map[string]*line{}, created: newKindRecord(),
		address: sync.OnceValues(p.ownAddress),
	}
	if err := w.start(p.egress); err != nil {
		servers.stop()
		return nil, err
	}
	return w, nil
}

// ownAddress is one that no other world has.
func (p *pool) ownAddress() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bridge == nil {
		bridge, err := makeBridge()
		if err != nil {
			return "", err
		}
		p.bridge = bridge
	}
	return addOwnAddress(p.bridge)
}

// start runs the API servers of the fleet and its members.
func (w *world) start(egress map[string][]byte) error {
	scheme := fleetscheme.Scheme()
	configs, err := w.startServers(egress)
	if err != nil {
		return err
	}
	w.fleetConfig = configs["fleet"]
	if w.fleet, err = w.newClient(w.fleetConfig, scheme); err != nil {
		return err
	}
	if err := errors.Join(crds.Install(ctx, w.fleet), w.installPolicies(),
		fleetextension.ApplyRBAC(ctx, w.fleet)); err != nil {
		return err
	}
	for _, name := range memberNames {
		if w.member[name], err = w.newClient(configs[name], scheme); err != nil {
			return err
		}
		w.lines[name] = &line{}
		if err := w.lines[name].connect(configs[name]); err != nil {
			return err
		}
		w.servers.stops = append(w.servers.stops, func() { _ = w.lines[name].listener.Close() })
		if err := w.join(name, configs[name]); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) startServers(egress map[string][]byte) (map[string]*rest.Config, error) {
	selector, err := w.servers.startEgress(egress)
	if err != nil {
		return nil, err
	}
	configs := map[string]*rest.Config{}
	further := map[string][]string{"fleet": {"--egress-selector-config-file=" + selector}}
	for _, name := range append([]string{"fleet"}, memberNames...) {
		config, stop, err := w.servers.start(name, further[name]...)
		if err != nil {
			return nil, err
		}
		configs[name], w.servers.stops = config, append(w.servers.stops, stop)
	}
	for name, config := range configs {
		if err := waitReady(config); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return configs, nil
}

// ownAddress may be behind a Service, which loopback addresses may not. It is there for this world alone, and leads
// nowhere else.
func (w *world) ownAddress(t *testing.T) string {
	t.Helper()
	address, err := w.address()
	if err != nil {
		t.Fatalf("this test makes a network interface, for which it must run as root: %v", err)
	}
	return address
}
