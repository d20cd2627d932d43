package trellisctl

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// gardenWithAddresses reads a configuration anew, as each run does.
func gardenWithAddresses(t *testing.T, dir string) *Garden {
	t.Helper()
	path := filepath.Join(dir, "trellisctl.yaml")
	text := "gardens: [{name: g, kubeconfig: k, " +
		"endpoints: [{domain: example, address: '127.1.2.1:443', addresses: 64}]}]"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := LoadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	return &config.Gardens[0]
}

// colliding are hosts that would take the same address first.
func colliding(t *testing.T, count int) []string {
	t.Helper()
	endpoint := Endpoint{Domain: "example", Address: "127.1.2.1:443", Addresses: 64}
	hosts := []string{"api.0.example"}
	for i := 1; len(hosts) < count; i++ {
		host := fmt.Sprintf("api.%d.example", i)
		if endpoint.of(host)[0] == endpoint.of(hosts[0])[0] {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

func address(t *testing.T, garden *Garden, host string) string {
	t.Helper()
	address, ok := garden.addressOf(host)
	if !ok {
		t.Fatalf("%s has no address", host)
	}
	return address
}

// Two clusters whose names have the same hash are told apart, whichever is asked for first in later runs.
func TestHostsThatCollideKeepAddressesOfTheirOwn(t *testing.T) {
	dir, hosts := t.TempDir(), colliding(t, 3)
	first := map[string]string{}
	used := map[string]string{}
	for _, host := range hosts {
		first[host] = address(t, gardenWithAddresses(t, dir), host)
		if other, taken := used[first[host]]; taken {
			t.Errorf("%s and %s have %s", host, other, first[host])
		}
		used[first[host]] = host
	}
	for i := range hosts {
		host := hosts[len(hosts)-1-i]
		if again := address(t, gardenWithAddresses(t, dir), host); again != first[host] {
			t.Errorf("%s has %s, then %s", host, first[host], again)
		}
	}
}

// Runs at the same time know of each other's addresses, and one host has one address.
func TestAddressesAreKeptByRunsAtTheSameTime(t *testing.T) {
	dir, hosts := t.TempDir(), colliding(t, 30)
	const runs = 2
	got := make([]string, runs*len(hosts))
	var group sync.WaitGroup
	for i := range got {
		garden := gardenWithAddresses(t, dir)
		group.Go(func() { got[i], _ = garden.addressOf(hosts[i%len(hosts)]) })
	}
	group.Wait()
	used := map[string]string{}
	for i, address := range got {
		host := hosts[i%len(hosts)]
		if other, taken := used[address]; taken && other != host || address != got[i%len(hosts)] {
			t.Errorf("%s has %s and %s, the latter also %s", host, got[i%len(hosts)], address, other)
		}
		used[address] = host
	}
	if again := address(t, gardenWithAddresses(t, dir), hosts[0]); again != got[0] {
		t.Errorf("%s has %s, then %s", hosts[0], got[0], again)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "trellisctl.addresses"))
	if err != nil || len(entries) != len(hosts) {
		t.Errorf("%d hosts, remembered are %v (%v)", len(hosts), entries, err)
	}
}

// When there are more clusters than addresses, a new one takes that of the one that was not used for longest.
func TestTheAddressThatIsUnusedForLongestIsGivenAway(t *testing.T) {
	dir := t.TempDir()
	garden := gardenWithAddresses(t, dir)
	addresses := map[string]string{}
	for i := range 63 {
		host := fmt.Sprintf("api.%d.example", i)
		addresses[host] = address(t, garden, host)
		old := time.Now().Add(time.Duration(i-100) * time.Hour)
		if err := os.Chtimes(addressFile(garden.addressDir, addresses[host]), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if again := address(t, garden, "api.0.example"); again != addresses["api.0.example"] {
		t.Fatalf("got %s, want %s", again, addresses["api.0.example"])
	}
	if got := address(t, garden, "api.new.example"); got != addresses["api.1.example"] {
		t.Errorf("got %s, want that of host 1, %s", got, addresses["api.1.example"])
	}
}

// Where nothing can be remembered, the hash alone decides.
func TestAddressesWithoutAFolder(t *testing.T) {
	dir, hosts := t.TempDir(), colliding(t, 2)
	if err := os.WriteFile(filepath.Join(dir, "trellisctl.addresses"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	garden := gardenWithAddresses(t, dir)
	if a, b := address(t, garden, hosts[0]), address(t, garden, hosts[1]); a != b {
		t.Errorf("got %s and %s", a, b)
	}
}
