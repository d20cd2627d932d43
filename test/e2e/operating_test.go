//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// drill runs the commands below a heading of docs/operating.md, as they are written there, against the seed, with more
// variables in their environment.
func (l *landscape) drill(t *testing.T, heading string, environment ...string) {
	t.Helper()
	l.drillOf(t, drilledShoot, heading, environment...)
}

// drilledShoot is the shoot that docs/operating.md names.
const drilledShoot = "member1"

// drillOf is drill, for another shoot than the one that is named there.
func (l *landscape) drillOf(t *testing.T, shoot, heading string, environment ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.root, "docs/operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), heading+"\n")
	if !found {
		t.Fatalf("docs/operating.md has no heading %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n#")
	var script []string
	for line := range strings.Lines(section) {
		if command, indented := strings.CutPrefix(line, "    "); indented {
			script = append(script, strings.ReplaceAll(command, drilledShoot, shoot))
		}
	}
	if len(script) == 0 {
		t.Fatalf("docs/operating.md has no commands below %q", heading)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", strings.Join(script, ""))
	command.Dir = l.root
	command.Env = append(append(os.Environ(), "PATH="+filepath.Join(l.root, "bin")+":"+os.Getenv("PATH"),
		"KUBECONFIG="+l.runtime()), environment...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("the commands below %q: %v\n%s", heading, err, out)
	}
	t.Logf("%s:\n%s", heading, out)
}

// waitForBackup waits until the store has all that etcd-main of a namespace was told until now, and returns until when
// it has that.
func (l *landscape) waitForBackup(t *testing.T, namespace string) (saved time.Time) {
	t.Helper()
	written := time.Now()
	eventually(t, 3*time.Minute, func(ctx context.Context) (err error) {
		if saved, err = l.newestBackup(ctx, namespace); err == nil && !saved.After(written.Add(time.Second)) {
			err = fmt.Errorf("all until %s is saved, want %s", saved, written)
		}
		return err
	})
	return saved
}

// newestBackup is until when the store has what etcd-main of a namespace was told.
func (l *landscape) newestBackup(ctx context.Context, namespace string) (time.Time, error) {
	inPod := []string{"-n", namespace}
	seed := l.runtimeKubectl()
	arguments, err := seed.try(ctx, "", append(inPod, "get", "pod", "etcd-main-0", "-o",
		"jsonpath={.spec.containers[0].args[*]}")...)
	if err != nil {
		return time.Time{}, err
	}
	command := append(inPod, "exec", "etcd-main-0", "-c", "etcd", "--", "/usr/local/bin/etcd-steward", "restorable")
	out, err := seed.try(ctx, "", append(command, strings.Fields(arguments)...)...)
	if err != nil {
		return time.Time{}, err
	}
	fields := strings.Fields(out)
	if len(fields) < 2 {
		return time.Time{}, fmt.Errorf("the store has nothing to restore: %q", out)
	}
	return time.Parse(time.RFC3339, fields[1])
}
