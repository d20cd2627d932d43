package worker

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/outages.md promises that of a MachineDeployment one machine is replaced at a time. machine-controller-manager
// has that as a constant; with another one, the page is to be changed, or the release is not to be taken.
func TestOneMachineIsReplacedAtATime(t *testing.T) {
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/gardener/machine-controller-manager").Output()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(strings.TrimSpace(string(folder)), "pkg", "util", "provider", "machinecontroller",
		"machine_util.go")
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`\n\s*maxReplacements\s*=\s*1\n`, `canMarkMachineFailed\([^)]*, maxReplacements\)`} {
		if !regexp.MustCompile(want).Match(source) {
			t.Errorf("%s does not have %s", path, want)
		}
	}
}
