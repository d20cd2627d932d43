//go:build e2e

// Package e2e tests a running landscape as users do: with kubectl and trellisctl only. The landscape is the one of this
// clone (`make up`); TRELLIS_LANDSCAPE names another. Tests run one after another, but for those in rows
// (rows_test.go).
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// landscape is where the programs and kubeconfigs are.
type landscape struct {
	root, name, state string
}

func open(t *testing.T) *landscape {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	l := &landscape{root: root, name: os.Getenv("TRELLIS_LANDSCAPE")}
	if l.name == "" {
		l.name = "local"
	}
	l.state = l.stateOf(l.name)
	if _, err := os.Stat(l.runtime()); err != nil {
		t.Fatalf("no landscape is running in this clone; start one with `make up` (%v)", err)
	}
	return l
}

// stateOf returns the state folder of a landscape of this clone.
func (l *landscape) stateOf(name string) string {
	if name == "local" {
		return filepath.Join(l.root, ".landscape")
	}
	return filepath.Join(l.root, ".landscape-"+name)
}

func (l *landscape) bin(name string) string { return filepath.Join(l.root, "bin", name) }
func (l *landscape) garden() string         { return filepath.Join(l.state, "garden.kubeconfig") }
func (l *landscape) runtime() string        { return filepath.Join(l.state, "runtime.kubeconfig") }

// command runs a program of the landscape and returns what it printed.
func (l *landscape) command(ctx context.Context, input, name string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, l.bin(name), arguments...)
	command.Dir = l.root
	command.Stdin = strings.NewReader(input)
	command.Env = append(os.Environ(), "TRELLISCTL_CONFIG="+filepath.Join(l.state, "trellisctl.yaml"))
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	err := command.Run()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(arguments, " "), err, strings.TrimSpace(problems.String()))
	}
	return out.String(), err
}

// kubectl is a cluster as kubectl sees it.
type kubectl struct {
	l          *landscape
	kubeconfig string
	// further arguments, before those of each call.
	further []string
}

func (k kubectl) try(ctx context.Context, input string, arguments ...string) (string, error) {
	return k.l.command(ctx, input, "kubectl",
		slices.Concat([]string{"--kubeconfig", k.kubeconfig}, k.further, arguments)...)
}

func (k kubectl) run(t *testing.T, arguments ...string) string {
	t.Helper()
	out, err := k.try(t.Context(), "", arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (k kubectl) apply(t *testing.T, manifest string) {
	t.Helper()
	if _, err := k.try(t.Context(), manifest, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// How eventually waits.
const (
	// worthTelling is how long a wait may take that the log need not know of.
	worthTelling = 5 * time.Second
	// slowly is the pause between attempts after that, which grows with what was waited, until it is slowest.
	slowly, slowest = 1500 * time.Millisecond, 4 * time.Second
	// patience is how much longer a wait may last than its test says: tests tell what is enough on a machine that has
	// nothing else to do, and a limit is there to end what hangs, not to find what is slow.
	patience = 3
	// attempt is how long one may take. On a busy machine kubectl alone was seen to start for 22 s.
	attempt = time.Minute
)

// eventually repeats try until it succeeds.
func eventually(t *testing.T, timeout time.Duration, try func(ctx context.Context) error) {
	t.Helper()
	timeout *= patience
	pause, begin := 500*time.Millisecond, time.Now()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), attempt)
		err := try(ctx)
		cancel()
		waited := time.Since(begin)
		if err == nil {
			if waited > worthTelling {
				t.Logf("waited %s", waited.Round(time.Second))
			}
			return
		}
		if waited > timeout {
			t.Fatalf("not within %s: %v", timeout, err)
		}
		if waited > worthTelling {
			// Each attempt is a process, and takes from what is waited for.
			pause = min(max(slowly, waited/20), slowest)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(pause):
		}
	}
}

// eventually repeats kubectl until check is content with its output.
func (k kubectl) eventually(t *testing.T, timeout time.Duration, check func(out string) error,
	arguments ...string) string {
	t.Helper()
	var last string
	eventually(t, timeout, func(ctx context.Context) (err error) {
		if last, err = k.try(ctx, "", arguments...); err != nil {
			return err
		}
		if err := check(last); err != nil {
			return fmt.Errorf("kubectl %s: %w", strings.Join(arguments, " "), err)
		}
		return nil
	})
	return last
}

func equals(want string) func(string) error {
	return func(out string) error {
		if got := strings.TrimSpace(out); got != want {
			return fmt.Errorf("got %q, want %q", got, want)
		}
		return nil
	}
}

func contains(want ...string) func(string) error {
	return func(out string) error {
		for _, part := range want {
			if !strings.Contains(out, part) {
				return fmt.Errorf("%q is not in:\n%s", part, out)
			}
		}
		return nil
	}
}

// lines checks the number of lines.
func lines(want int) func(string) error {
	return func(out string) error {
		if got := len(strings.Fields(out)); got != want {
			return fmt.Errorf("got %d, want %d:\n%s", got, want, out)
		}
		return nil
	}
}

// conditionStatus prints the status of a condition.
func conditionStatus(condition string) string {
	return fmt.Sprintf("jsonpath={.status.conditions[?(@.type==%q)].status}", condition)
}

func (l *landscape) gardenKubectl() kubectl  { return kubectl{l: l, kubeconfig: l.garden()} }
func (l *landscape) runtimeKubectl() kubectl { return kubectl{l: l, kubeconfig: l.runtime()} }

// shoot returns kubectl for a shoot of project demo, with a kubeconfig from trellisctl.
func (l *landscape) shoot(t *testing.T, name string) kubectl {
	t.Helper()
	return l.shootOf(t, "demo", name)
}

func (l *landscape) shootOf(t *testing.T, project, name string) kubectl {
	t.Helper()
	shoot, err := l.tryShoot(t.Context(), t.TempDir(), project, name)
	if err != nil {
		t.Fatal(err)
	}
	return shoot
}

// tryShoot returns kubectl for a shoot, whose kubeconfig it writes to a folder.
func (l *landscape) tryShoot(ctx context.Context, folder, project, name string) (kubectl, error) {
	out, err := l.command(ctx, "", "trellisctl", "kubeconfig", "--garden", l.name, "--project", project, "--shoot",
		name)
	if err != nil {
		return kubectl{}, err
	}
	path := filepath.Join(folder, name+".yaml")
	return kubectl{l: l, kubeconfig: path}, os.WriteFile(path, []byte(out), 0o600)
}

func (l *landscape) waitForShoot(t *testing.T, name, operation string, timeout time.Duration) {
	t.Helper()
	l.waitForShootIn(t, "garden-demo", name, operation, timeout)
}

func (l *landscape) waitForShootIn(t *testing.T, namespace, name, operation string, timeout time.Duration) {
	t.Helper()
	l.gardenKubectl().eventually(t, timeout, func(out string) error {
		var shoot struct {
			Metadata struct{ Generation int64 }
			Status   struct {
				ObservedGeneration int64
				LastOperation      struct {
					Type, State, Description string
					Progress                 int
				}
				LastErrors []struct{ Description string }
			}
		}
		if err := json.Unmarshal([]byte(out), &shoot); err != nil {
			return err
		}
		last := shoot.Status.LastOperation
		if last.State != "Succeeded" || shoot.Status.ObservedGeneration != shoot.Metadata.Generation ||
			(operation != "" && last.Type != operation) {
			return fmt.Errorf("%s %s (%d%%): %s; errors: %v", last.Type, last.State, last.Progress, last.Description,
				shoot.Status.LastErrors)
		}
		return nil
	}, "-n", namespace, "get", "shoot", name, "-o", "json")
}

// killProcess ends a program of a pod of the runtime cluster with SIGKILL, as a crash would, as soon as it runs: it may
// be on its way back from the kill before, also as another pod. The program is found among the processes in the pod's
// cgroups.
func (l *landscape) killProcess(t *testing.T, namespace, selector, program string) {
	t.Helper()
	// One grep reads all of /proc: two programs for each process outlast an attempt where hundreds run.
	const script = `found=1
for groups in $(grep -ls "$0" /proc/[0-9]*/cgroup); do
  process=${groups%/cgroup}
  case "$(readlink "$process/exe")" in */"$1") kill -9 "${process#/proc/}" && found=0;; esac
done
exit $found`
	eventually(t, time.Minute, func(ctx context.Context) error {
		pod, err := l.runtimeKubectl().try(ctx, "", "-n", namespace, "get", "pods", "-l", selector, "-o",
			"jsonpath={.items[0].metadata.uid} {.items[0].spec.nodeName}")
		if err != nil {
			return err
		}
		uid, node, _ := strings.Cut(pod, " ")
		out, err := l.command(ctx, "", "landscape", "exec", "--name", l.name, "--node", node, "--", "sh", "-c", script,
			uid, program)
		if err != nil {
			return fmt.Errorf("killing %s of %s/%s: %w %s", program, namespace, selector, err, out)
		}
		return nil
	})
}

// killAndReplace kills a program, and has another pod take the place of its pod at once, while the kubelet would wait
// longer after every crash.
func (l *landscape) killAndReplace(t *testing.T, namespace, selector, program string) {
	t.Helper()
	l.killProcess(t, namespace, selector, program)
	l.runtimeKubectl().run(t, "-n", namespace, "delete", "pods", "-l", selector, "--timeout=1m")
}

// killGardenlet ends the gardenlet of the landscape's seed as a crash would.
func (l *landscape) killGardenlet(t *testing.T) {
	t.Helper()
	l.killAndReplace(t, "garden", "app=gardenlet", "gardenlet")
}

// killFederation ends the fleet's controllers as a crash would.
func (l *landscape) killFederation(t *testing.T) {
	t.Helper()
	l.killAndReplace(t, "shoot--demo--fleet", "role=federation", "federation")
}

// input is an example of the landscape.
func input(t *testing.T, l *landscape, name string) string {
	t.Helper()
	return content(t, filepath.Join(l.root, "landscape/local/examples", name))
}

// testdata is a file of the folder testdata.
func testdata(t *testing.T, name string) string {
	t.Helper()
	return content(t, filepath.Join("testdata", name))
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
