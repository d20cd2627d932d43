package landscape

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

func TestNames(t *testing.T) {
	for name, valid := range map[string]bool{
		"local": true, "ci4711": true, "a": true, "a-b": true,
		"": false, "1a": false, "A": false, "a-": false, "a/b": false, "sixteen-letters-": false,
		"longer-than-fifteen": false,
	} {
		if _, err := New(name, "."); (err == nil) != valid {
			t.Errorf("name %q: error %v, valid should be %v", name, err, valid)
		}
	}
}

func TestLandscapesOfOneCloneKeepApart(t *testing.T) {
	local, err := New(DefaultName, "/clone")
	if err != nil {
		t.Fatal(err)
	}
	other, err := New("other", "/clone")
	if err != nil {
		t.Fatal(err)
	}
	if local.StateDir() != "/clone/.landscape" || other.StateDir() != "/clone/.landscape-other" {
		t.Errorf("state folders are %s and %s", local.StateDir(), other.StateDir())
	}
	if local.CacheDir() != other.CacheDir() {
		t.Error("landscapes of one clone should share what is built")
	}
}

func TestAllocate(t *testing.T) {
	everything := func(netip.Addr) bool { return true }
	first, err := allocate("local", netip.Addr{}, nil, everything)
	if err != nil {
		t.Fatal(err)
	}
	if bytes := first.As4(); bytes[0] != 127 || bytes[3] != 1 {
		t.Errorf("%s is not of the form 127.x.y.1", first)
	}
	tests := []struct {
		name   string
		before netip.Addr
		taken  map[netip.Addr]bool
		usable func(netip.Addr) bool
		same   bool
	}{
		{name: "the same name gets the same address", usable: everything, same: true},
		{name: "an address that was given is kept", before: first, usable: everything, same: true},
		{
			name: "one that another landscape has is not", before: first, taken: map[netip.Addr]bool{first: true},
			usable: everything,
		},
		{
			name: "nor one on which somebody listens", before: first,
			usable: func(a netip.Addr) bool { return a != first },
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := allocate("local", test.before, test.taken, test.usable)
			if err != nil {
				t.Fatal(err)
			}
			if (got == first) != test.same {
				t.Errorf("got %s, the first one was %s", got, first)
			}
		})
	}
	if _, err := allocate("local", netip.Addr{}, nil, func(netip.Addr) bool { return false }); err == nil {
		t.Error("an address was found where none is usable")
	}
}

func TestMountsBelow(t *testing.T) {
	const mountinfo = `22 1 254:0 / / rw - ext4 /dev/vda rw
30 22 0:1 / /clone/.landscape/node/overlay/root rw - overlay overlay rw
31 22 0:2 / /clone/.landscape-other/x rw - tmpfs tmpfs rw
32 22 0:3 / /clone/.landscape/with\040blank rw - tmpfs tmpfs rw
`
	found, err := mountsBelow(strings.NewReader(mountinfo), "/clone/.landscape")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || found[0] != "/clone/.landscape/node/overlay/root" ||
		found[1] != "/clone/.landscape/with blank" {
		t.Errorf("found %q", found)
	}
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1234 * time.Millisecond: "1.2s", 59 * time.Second: "59.0s", 61 * time.Second: "1m01s",
		10 * time.Minute: "10m00s",
	} {
		if got := seconds(d); got != want {
			t.Errorf("%s is written %q, want %q", d, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	if got := cut("zwölf Zeichen\nund mehr", 10); got != "zwölf Zei…" {
		t.Errorf("got %q", got)
	}
}

func TestSummaryNamesOtherLandscapes(t *testing.T) {
	l, err := New("other", "/clone")
	if err != nil {
		t.Fatal(err)
	}
	text := l.summary(90*time.Second, "127.0.0.9")
	for _, want := range []string{
		"bin/trellisctl --config .landscape-other/trellisctl.yaml ls", "1m30s", ".landscape-other/garden.kubeconfig",
		"https://dashboard.garden.local.trellis.garden",
		"127.0.0.9 dashboard.garden.local.trellis.garden login.garden.local.trellis.garden",
		".landscape-other/runtime.kubeconfig -n garden get secret local-issuer",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the summary lacks %q:\n%s", want, text)
		}
	}
}

// A landscape may be called what YAML takes for something else, and lie in any folder.
func TestTrellisctlConfigOfAnyName(t *testing.T) {
	for _, name := range []string{"n", "no", "null", "main"} {
		l, err := New(name, "/a folder: #1")
		if err != nil {
			t.Fatal(err)
		}
		r := &run{Landscape: l, state: state{Loopback: netip.MustParseAddr("127.0.0.9")}}
		var config struct {
			Gardens []struct{ Name, Kubeconfig any }
		}
		if err := yaml.Unmarshal([]byte(r.trellisctlConfig()), &config); err != nil {
			t.Fatal(err)
		}
		if got := config.Gardens[0]; got.Name != name || got.Kubeconfig != l.GardenKubeconfig() {
			t.Errorf("%s is written as %+v", name, got)
		}
	}
}
