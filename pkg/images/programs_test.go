package images

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Programs tell as their own the versions that they are built from; docs/contracts/machines.md tells containerd's and
// runc's.
func TestVersionsAreThoseOfTheModules(t *testing.T) {
	for dir, want := range map[string]string{
		containerd.Dir:    containerdPackage + " v" + containerdVersion,
		runcDir:           runcPackage + " v" + runcVersion,
		metricsServer.Dir: "sigs.k8s.io/metrics-server " + metricsServerVersion,
	} {
		mod, err := os.ReadFile(filepath.Join("../..", dir, "go.mod"))
		if err != nil || !strings.Contains(string(mod), "require "+want+"\n") {
			t.Errorf("%s does not require %s (%v)", dir, want, err)
		}
	}
}

// What runc is compiled from, and how, decides whether it is compiled again.
func TestRuncIsCompiledAgainForAnotherVersion(t *testing.T) {
	module := t.TempDir()
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(module, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "require runc v1")
	write("go.sum", "")
	first, err := runcKey(module)
	if err != nil {
		t.Fatal(err)
	}
	write("go.mod", "require runc v2")
	if second, err := runcKey(module); err != nil || second == first {
		t.Errorf("the key must change: %q %v", second, err)
	}
}
