package trellisctl

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestReadConfig(t *testing.T) {
	for name, c := range map[string]struct{ content, problem string }{
		"good": {
			"gardens:\n- name: local\n  kubeconfig: /k\n  endpoints: [{domain: a.b, address: '127.0.0.1:443'}]\n", "",
		},
		"no kubeconfig":    {"gardens:\n- name: local\n", "gardens[0]: name and kubeconfig"},
		"a misspelt field": {"gardens:\n- name: local\n  kubeconfg: /k\n", "gardens[0].kubeconfg: Forbidden"},
		"too many addresses": {
			"gardens:\n- name: a\n  kubeconfig: /k\n  endpoints: [{domain: d, address: '127.0.0.1:1', addresses: " +
				"300}]\n", "gardens[0].endpoints[0].addresses",
		},
		"addresses of a name": {
			"gardens:\n- name: a\n  kubeconfig: /k\n  endpoints: [{domain: d, address: 'h:1', addresses: 3}]\n",
			"gardens[0].endpoints[0].address:",
		},
		"address, no port": {
			"gardens:\n- name: a\n  kubeconfig: /k\n  endpoints: [{domain: d, address: '127.0.0.1'}]\n",
			"gardens[0].endpoints[0].address",
		},
		"a range of bastions": {
			"gardens:\n- name: a\n  kubeconfig: /k\n  bastions: {range: 10.0.0.1, address: '127.0.0.1:1'}\n",
			"gardens[0].bastions.range",
		},
		"an address of bastions": {
			"gardens:\n- name: a\n  kubeconfig: /k\n  bastions: {range: 10.0.0.0/8, address: 'h:1'}\n",
			"gardens[0].bastions.address",
		},
		"where users of bastions come from": {
			"gardens:\n- name: a\n  kubeconfig: /k\n  bastions: {range: 10.0.0.0/8, address: '127.0.0.1:1', " +
				"cidrs: [x]}\n", "gardens[0].bastions.cidrs",
		},
		"not a mapping":       {"- a\n", "must be an object, not array"},
		"the second is wrong": {"gardens:\n- {name: a, kubeconfig: /k}\n- {kubeconfig: /k}\n", "gardens[1]"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "trellisctl.yaml")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := LoadConfig(path)
			if (err == nil) != (c.problem == "") || (err != nil && !strings.Contains(err.Error(), c.problem)) {
				t.Errorf("got %v, want %q", err, c.problem)
			}
			if err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("the error must name the file: %v", err)
			}
		})
	}
}

func TestMissingConfigSaysWhatToDo(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv(ConfigEnv, "")
	if _, err := LoadConfig(""); err == nil || !strings.Contains(err.Error(), "make up") {
		t.Errorf("got %v", err)
	}
}

// Who named a file that is not there, or that cannot be read, is told, and so is what to do.
func TestNamedConfigThatIsMissing(t *testing.T) {
	folder := t.TempDir()
	missing, broken := filepath.Join(folder, "none.yaml"), filepath.Join(folder, "broken.yaml")
	if err := os.WriteFile(broken, []byte("gardens: {"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		flag, environment string
		want              []string
	}{
		"by the flag": {missing, broken, []string{
			missing + " does not exist, which --config names: correct that or leave it out",
			"`trellisctl config set-garden IDENTITY --kubeconfig FILE --config " + missing + "`",
		}},
		"by the environment": {"", missing, []string{
			missing + " does not exist, which the environment variable TRELLISCTL_CONFIG names",
		}},
		"broken, by the flag": {broken, missing, []string{broken + ": ", "(the configuration that --config names)"}},
		"a folder, by the flag": {folder, "", []string{
			folder, "is a directory (the configuration that --config names)",
		}},
		"broken, by the environment": {"", broken, []string{broken, "that the environment variable TRELLISCTL_CONFIG"}},
	} {
		t.Setenv(ConfigEnv, test.environment)
		line := "ls gardens"
		if test.flag != "" {
			line += " --config " + test.flag
		}
		_, err := commandLine(t, line)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", name, err, want)
			}
		}
	}
}

func TestConfigOfTheLandscapeIsFoundFromBelow(t *testing.T) {
	root := t.TempDir()
	below := filepath.Join(root, "a", "b")
	for path, content := range map[string]string{
		filepath.Join(root, ".landscape", "trellisctl.yaml"): "gardens: [{name: local, kubeconfig: /k}]",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	t.Setenv(ConfigEnv, "")
	config, err := LoadConfig("")
	if err != nil || len(config.Gardens) != 1 || config.Gardens[0].Name != "local" {
		t.Errorf("got %+v, %v", config, err)
	}
}

func TestGarden(t *testing.T) {
	one := &Config{Gardens: []Garden{{Name: "a", Identity: "id-a"}}}
	two := &Config{Gardens: []Garden{{Name: "a", Identity: "id-a"}, {Name: "b"}}}
	for name, c := range map[string]struct {
		config     *Config
		ask, found string
		problem    string
	}{
		"the only one":    {one, "", "a", ""},
		"by name":         {two, "b", "b", ""},
		"by identity":     {two, "id-a", "a", ""},
		"several, no ask": {two, "", "", "choose one of a, b"},
		"unknown":         {two, "c", "", "known are: a, b"},
	} {
		t.Run(name, func(t *testing.T) {
			garden, err := c.config.Garden(c.ask)
			switch {
			case c.problem != "":
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("got %v, want %q", err, c.problem)
				}
			case err != nil || garden.Name != c.found:
				t.Errorf("got %v, %v", garden, err)
			}
		})
	}
}

func TestRoute(t *testing.T) {
	garden := &Garden{Endpoints: []Endpoint{{Domain: "local.trellis.garden", Address: "127.1.2.1:443"}}}
	kubeconfig := &clientcmdapi.Config{Clusters: map[string]*clientcmdapi.Cluster{
		"inside":    {Server: "https://api.m1.demo.local.trellis.garden"},
		"lookalike": {Server: "https://api.notlocal.trellis.garden"},
		"outside":   {Server: "https://example.org:6443"},
	}}
	if err := garden.Route(kubeconfig); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]clientcmdapi.Cluster{
		"inside":    {Server: "https://127.1.2.1:443", TLSServerName: "api.m1.demo.local.trellis.garden"},
		"lookalike": {Server: "https://api.notlocal.trellis.garden"},
		"outside":   {Server: "https://example.org:6443"},
	} {
		if got := kubeconfig.Clusters[name]; got.Server != want.Server || got.TLSServerName != want.TLSServerName {
			t.Errorf("%s: got %s (%s)", name, got.Server, got.TLSServerName)
		}
	}
}

// What kubectl has learnt of one cluster's API is not mistaken for that of another.
func TestClustersHaveAddressesOfTheirOwn(t *testing.T) {
	garden := &Garden{Endpoints: []Endpoint{{Domain: "local.trellis.garden", Address: "127.1.2.1:443", Addresses: 64}}}
	hosts := []string{
		"api.garden.local.trellis.garden", "api.member1.demo.local.trellis.garden",
		"api.member2.demo.local.trellis.garden", "api.fleet.demo.local.trellis.garden",
	}
	used := map[string]string{}
	for _, host := range hosts {
		address, ok := garden.addressOf(host)
		if other, taken := used[address]; !ok || taken {
			t.Errorf("%s has %s, as has %s", host, address, other)
		}
		used[address] = host
		parsed, err := netip.ParseAddrPort(address)
		if err != nil || !netip.MustParsePrefix("127.1.2.0/26").Contains(parsed.Addr().Prev()) || parsed.Port() != 443 {
			t.Errorf("%s has %s (%v), want one of 127.1.2.1 to 127.1.2.64", host, address, err)
		}
		if again, _ := garden.addressOf(host); again != address {
			t.Errorf("%s has %s, then %s", host, address, again)
		}
	}
}

// A wrong endpoint is named by its field, before anything is connected to.
func TestEndpointsAreChecked(t *testing.T) {
	for name, test := range map[string]struct {
		endpoint Endpoint
		field    string
	}{
		"one address":               {Endpoint{Address: "127.0.0.1:443"}, ""},
		"a name":                    {Endpoint{Address: "gateway.example:443"}, ""},
		"several":                   {Endpoint{Address: "127.0.0.1:443", Addresses: 64}, ""},
		"no port":                   {Endpoint{Address: "127.0.0.1"}, "address"},
		"fewer than none":           {Endpoint{Address: "127.0.0.1:443", Addresses: -1}, "addresses"},
		"more than can be meant":    {Endpoint{Address: "127.0.0.1:443", Addresses: maxAddresses + 1}, "addresses"},
		"several, counted by names": {Endpoint{Address: "gateway.example:443", Addresses: 2}, "address"},
	} {
		field, err := test.endpoint.check()
		if field != test.field || (err == nil) != (test.field == "") {
			t.Errorf("%s: got %q, %v", name, field, err)
		}
	}
}

// Every host may have each of the addresses but the first, where there are more, always in the same order.
func FuzzAddressOfAHost(f *testing.F) {
	f.Add("api.one.example", 64)
	f.Add("", 1)
	f.Fuzz(func(t *testing.T, host string, addresses int) {
		endpoint := Endpoint{Address: "127.40.1.1:443", Addresses: addresses}
		if _, err := endpoint.check(); err != nil {
			return
		}
		got := endpoint.of(host)
		if !slices.Equal(got, endpoint.of(host)) || (addresses > 1) == slices.Contains(got, endpoint.Address) ||
			len(got) != max(1, addresses-1) || len(sets.New(got...)) != len(got) {
			t.Errorf("%q of %d: got %s", host, addresses, got)
		}
	})
}

// A project's place among the targets is told as a path, and nothing as nothing.
func TestTargetsAsText(t *testing.T) {
	for want, target := range map[string]Target{
		"nothing": {}, "garden/g project/p shoot/s control-plane": {
			Garden: "g", Project: "p", Shoot: "s", ControlPlane: true,
		}, "seed/x": {
			Seed: "x",
		},
	} {
		if got := target.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
