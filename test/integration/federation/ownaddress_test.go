package federation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
)

// bridgePrefix and the id of the process that made it are the name of a bridge.
const bridgePrefix = "fleet-"

// benchmarks of networks have addresses of this range to themselves (RFC 2544).
var benchmarks = net.IPNet{IP: net.IPv4(198, 18, 0, 0).To4(), Mask: net.CIDRMask(15, 32)}

// makeBridge makes one without ports, for the addresses of this run. A run that is killed leaves its bridge behind for
// the next one to remove.
func makeBridge() (*netlink.Bridge, error) {
	if err := removeBridgesOfDeadRuns(); err != nil {
		return nil, err
	}
	return addBridge(os.Getpid())
}

func addBridge(pid int) (*netlink.Bridge, error) {
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridgePrefix + strconv.Itoa(pid)}}
	if err := netlink.LinkAdd(bridge); err != nil {
		return nil, fmt.Errorf("adding bridge %s: %w", bridge.Name, err)
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return nil, errors.Join(fmt.Errorf("setting bridge %s up: %w", bridge.Name, err), netlink.LinkDel(bridge))
	}
	return bridge, nil
}

// addOwnAddress gives the bridge one that it has not yet.
func addOwnAddress(bridge *netlink.Bridge) (string, error) {
	for {
		address := net.IPv4(198, 18, byte(rand.N(256)), byte(1+rand.N(254)))
		if err := addAddress(bridge, address); !errors.Is(err, syscall.EEXIST) {
			return address.String(), err
		}
	}
}

func addAddress(bridge *netlink.Bridge, address net.IP) error {
	if err := netlink.AddrAdd(bridge,
		&netlink.Addr{IPNet: &net.IPNet{IP: address, Mask: net.CIDRMask(32, 32)}}); err != nil {
		return fmt.Errorf("giving bridge %s address %s: %w", bridge.Name, address, err)
	}
	return nil
}

func removeBridgesOfDeadRuns() error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("listing network interfaces: %w", err)
	}
	for _, link := range links {
		if !isOfDeadRun(link) {
			continue
		}
		// Another run may be removing it as well.
		var gone netlink.LinkNotFoundError
		if err := netlink.LinkDel(link); err != nil && !errors.As(err, &gone) && !errors.Is(err, syscall.ENODEV) {
			return fmt.Errorf("removing bridge %s: %w", link.Attrs().Name, err)
		}
	}
	return nil
}

func isOfDeadRun(link netlink.Link) bool {
	digits, ours := strings.CutPrefix(link.Attrs().Name, bridgePrefix)
	pid, err := strconv.Atoi(digits)
	if !ours || err != nil || pid <= 0 || link.Type() != "bridge" || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	addresses, err := netlink.AddrList(link, netlink.FAMILY_V4)
	others := func(a netlink.Addr) bool { return !benchmarks.Contains(a.IP) }
	return err == nil && len(addresses) > 0 && !slices.ContainsFunc(addresses, others)
}

func TestBridgesOfDeadRuns(t *testing.T) {
	if _, err := worlds.ownAddress(); err != nil {
		t.Fatal(err)
	}
	ended, lives := exec.Command("true"), exec.Command("sleep", "60")
	if err := errors.Join(ended.Run(), lives.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = lives.Process.Kill()
		_ = lives.Wait()
	})
	for _, tc := range []struct {
		what    string
		pid     int
		address net.IP
		stays   bool
	}{
		{"a run that has ended", ended.ProcessState.Pid(), net.IPv4(198, 18, 0, 1), false},
		{"somebody else's address", ended.ProcessState.Pid(), net.IPv4(192, 0, 2, 1), true},
		{"a run that lives", lives.Process.Pid, net.IPv4(198, 18, 0, 1), true},
	} {
		bridge, err := addBridge(tc.pid)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(addAddress(bridge, tc.address), removeBridgesOfDeadRuns()); err != nil {
			t.Fatal(err)
		}
		if _, err := netlink.LinkByName(bridge.Name); (err == nil) != tc.stays {
			t.Errorf("%s: got %v", tc.what, err)
		}
		_ = netlink.LinkDel(bridge)
	}
	if _, err := netlink.LinkByName(bridgePrefix + strconv.Itoa(os.Getpid())); err != nil {
		t.Errorf("the bridge of this run: %v", err)
	}
}
