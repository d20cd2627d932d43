//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// changedSinceEnv names the commit since which changes count: tests that cover nothing of them are skipped. Without it
// all run.
const changedSinceEnv = "TRELLIS_CHANGED_SINCE"

// What some tests cover, as files and folders of the repository. docs/testing.md has the rule.
var (
	// coveredByAll is what every test depends on.
	coveredByAll = []string{
		".ci", "Makefile", "go.mod", "images", "pkg/apis", "pkg/apiserver", "pkg/apply", "pkg/client", "pkg/flow",
		"pkg/managers", "pkg/rollout", "test/e2e", "test/prober",
	}
	controlPlane = []string{
		"cmd/etcd-steward", "cmd/gardenlet", "cmd/vpn", "pkg/component", "pkg/etcd", "pkg/gardenlet", "pkg/vpn",
	}
	credentials = []string{
		"cmd/etcd-steward", "extensions/pkg", "pkg/component", "pkg/encryption", "pkg/etcd", "pkg/gardenlet",
		"pkg/nodeagent", "pkg/resourcemanager", "pkg/secrets",
	}
	backups       = []string{"cmd/etcd-steward", "pkg/component/etcd", "pkg/etcd", "pkg/gardenlet"}
	gardenBackups = slices.Concat(backups, []string{"extensions/provider-local", "images/objectstore", "pkg/landscape"})
	autoscaling   = []string{
		"cmd/cluster-autoscaler", "extensions/pkg/worker", "extensions/provider-local", "pkg/clusterautoscaler",
		"pkg/component/clusterautoscaler",
	}
	federation   = []string{"cmd/federation", "extensions/federation", "pkg/federation"}
	growth       = slices.Concat(autoscaling, federation)
	managedSeeds = []string{
		"charts", "cmd/gardenlet", "pkg/controllermanager", "pkg/extensionuse", "pkg/gardenlet", "pkg/gardenletconfig",
		"pkg/helm", "pkg/managedresources",
	}
	landscapes = []string{"cmd/landscape", "hack/host-state.sh", "landscape", "pkg/images", "pkg/landscape"}
)

// changedFiles are the files that differ from those of the commit, by their paths in the repository.
var changedFiles = sync.OnceValues(func() ([]string, error) {
	out, err := exec.Command("git", "-C", "../..", "diff", "--name-only", "--no-renames", os.Getenv(changedSinceEnv),
		"--").Output()
	if err != nil {
		return nil, fmt.Errorf("what changed since %s=%s: %w", changedSinceEnv, os.Getenv(changedSinceEnv), err)
	}
	return strings.Fields(string(out)), nil
})

// whenChanged is a test that is skipped when nothing of what it covers has changed.
func whenChanged(covers []string, run func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) {
		if os.Getenv(changedSinceEnv) != "" {
			changed, err := changedFiles()
			if err != nil {
				t.Fatal(err)
			}
			if !covered(changed, slices.Concat(coveredByAll, covers)) {
				t.Skipf("nothing has changed since %s of what it covers: %s", os.Getenv(changedSinceEnv),
					strings.Join(covers, ", "))
			}
		}
		run(t)
	}
}

// covered tells whether a file lies in one of the folders, or is one of them.
func covered(files, folders []string) bool {
	return slices.ContainsFunc(files, func(file string) bool {
		return slices.ContainsFunc(folders, func(folder string) bool {
			return file == folder || strings.HasPrefix(file, folder+"/")
		})
	})
}

func TestCovered(t *testing.T) {
	for _, test := range []struct {
		file string
		want bool
	}{
		{"pkg/etcd/backup/chain.go", true}, {"hack/host-state.sh", true},
		{"pkg/etcdother/x.go", false}, {"docs/testing.md", false},
	} {
		if got := covered([]string{"README.md", test.file}, slices.Concat(backups, landscapes)); got != test.want {
			t.Errorf("%s: got %t, want %t", test.file, got, test.want)
		}
	}
	all := slices.Concat(coveredByAll, controlPlane, credentials, gardenBackups, growth, managedSeeds, landscapes)
	for _, path := range all {
		if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
			t.Errorf("a test covers what is not there: %v", err)
		}
	}
}
