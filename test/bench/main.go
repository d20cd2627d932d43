// The bench program measures a running landscape and writes docs/benchmarks.md: how long a shoot takes to answer, to have
// a node and to run a pod, and what its control plane needs. Run it with `make bench` on an otherwise idle machine.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"time"
)

const (
	rounds    = 3
	benchName = "bench"
	technical = "shoot--demo--" + benchName
	report    = "docs/benchmarks.md"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// landscape is the one that is measured.
type landscape struct{ name, state string }

// figures of one round.
type figures struct {
	api, node, pod time.Duration
	// memory is the proportional set size of the control plane in bytes, cpu its share of one core when idle.
	memory int64
	cpu    float64
}

func run(ctx context.Context) error {
	l := landscape{name: os.Getenv("TRELLIS_LANDSCAPE")}
	if l.name == "" {
		l.name = "local"
	}
	l.state = ".landscape"
	if l.name != "local" {
		l.state += "-" + l.name
	}
	var all []figures
	for round := range rounds {
		fmt.Printf("round %d of %d\n", round+1, rounds)
		measured, err := l.measure(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("  API %.1fs, node %.1fs, pod %.1fs, %d MiB, %.1f %% of a core\n", measured.api.Seconds(), measured.node.Seconds(), measured.pod.Seconds(), measured.memory>>20, measured.cpu*100)
		all = append(all, measured)
	}
	return write(all)
}

func (l landscape) kubectl(ctx context.Context, kubeconfig, input string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "bin/kubectl", append([]string{"--kubeconfig", kubeconfig}, arguments...)...)
	command.Stdin = strings.NewReader(input)
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// until repeats a command until it succeeds with an output that holds want.
func until(ctx context.Context, want string, do func(context.Context) (string, error)) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		out, err := do(ctx)
		if err == nil && strings.Contains(out, want) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %v %s", ctx.Err(), err, out)
		case <-ticker.C:
		}
	}
}

func (l landscape) measure(ctx context.Context) (figures, error) {
	garden := filepath.Join(l.state, "garden.kubeconfig")
	example, err := os.ReadFile("landscape/local/examples/shoot-member1.yaml")
	if err != nil {
		return figures{}, err
	}
	manifest := strings.NewReplacer("name: member1", "name: "+benchName, "10.180.1.0/24", "10.180.8.0/24",
		"  labels:\n", "  labels:\n    federation.trellis.garden/join: \"false\"\n").Replace(string(example))
	start := time.Now()
	if _, err := l.kubectl(ctx, garden, manifest, "apply", "-f", "-"); err != nil {
		return figures{}, err
	}
	var result figures
	shoot := filepath.Join(os.TempDir(), "trellis-bench.kubeconfig")
	defer os.Remove(shoot)
	if err := until(ctx, "ok", func(ctx context.Context) (string, error) { return l.ready(ctx, shoot) }); err != nil {
		return figures{}, fmt.Errorf("API server: %w", err)
	}
	result.api = time.Since(start)
	if err := until(ctx, " Ready ", func(ctx context.Context) (string, error) {
		return l.kubectl(ctx, shoot, "", "get", "nodes", "--no-headers")
	}); err != nil {
		return figures{}, fmt.Errorf("node: %w", err)
	}
	result.node = time.Since(start)
	if _, err := l.kubectl(ctx, shoot, "", "run", "web", "--image=nginx"); err != nil {
		return figures{}, err
	}
	if err := until(ctx, "Running", func(ctx context.Context) (string, error) {
		return l.kubectl(ctx, shoot, "", "get", "pod", "web", "--no-headers")
	}); err != nil {
		return figures{}, fmt.Errorf("pod: %w", err)
	}
	result.pod = time.Since(start)
	if err := until(ctx, "Succeeded", func(ctx context.Context) (string, error) {
		return l.kubectl(ctx, garden, "", "-n", "garden-demo", "get", "shoot", benchName, "-o", "jsonpath={.status.lastOperation.state}")
	}); err != nil {
		return figures{}, err
	}
	if result.memory, result.cpu, err = l.usage(ctx); err != nil {
		return figures{}, err
	}
	if _, err := l.kubectl(ctx, garden, "", "-n", "garden-demo", "annotate", "shoot", benchName, "confirmation.gardener.cloud/deletion=true"); err != nil {
		return figures{}, err
	}
	_, err = l.kubectl(ctx, garden, "", "-n", "garden-demo", "delete", "shoot", benchName, "--timeout=10m")
	return result, err
}

// ready asks for a kubeconfig as users do and then asks the API server whether it is ready.
func (l landscape) ready(ctx context.Context, path string) (string, error) {
	command := exec.CommandContext(ctx, "bin/trellisctl", "--config", filepath.Join(l.state, "trellisctl.yaml"), "kubeconfig", "--garden", l.name, "--project", "demo", "--shoot", benchName)
	out, err := command.Output()
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, out, 0o600); err != nil {
		return "", err
	}
	return l.kubectl(ctx, path, "", "get", "--raw", "/readyz")
}

// idlePeriod is how long the control plane is watched for its idle CPU.
const idlePeriod = 30 * time.Second

// usage sums up all processes of the control plane's pods, which are found by their cgroups.
func (l landscape) usage(ctx context.Context) (memory int64, cpu float64, err error) {
	uids, err := l.kubectl(ctx, filepath.Join(l.state, "runtime.kubeconfig"), "", "-n", technical, "get", "pods", "-o", "jsonpath={.items[*].metadata.uid}")
	if err != nil {
		return 0, 0, err
	}
	script := `pattern=$(echo "$0" | tr ' ' '|'); pss=0; ticks=0
for process in /proc/[0-9]*; do
  grep -Eq "$pattern" "$process/cgroup" 2>/dev/null || continue
  value=$(awk '/^Pss:/ {print $2}' "$process/smaps_rollup" 2>/dev/null); pss=$((pss + ${value:-0}))
  value=$(awk '{sub(/.*\) /, ""); print $12 + $13}' "$process/stat" 2>/dev/null); ticks=$((ticks + ${value:-0}))
done
echo $pss $ticks`
	sample := func() (pss, ticks int64, err error) {
		out, err := exec.CommandContext(ctx, "bin/landscape", "exec", "--name", l.name, "--", "sh", "-c", script, strings.TrimSpace(uids)).Output()
		if err != nil {
			return 0, 0, err
		}
		_, err = fmt.Sscan(string(out), &pss, &ticks)
		return pss, ticks, err
	}
	select {
	case <-time.After(idlePeriod):
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	_, before, err := sample()
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	select {
	case <-time.After(idlePeriod):
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	pss, after, err := sample()
	const ticksPerSecond = 100
	return pss << 10, float64(after-before) / ticksPerSecond / time.Since(start).Seconds(), err
}

func median[T any](all []figures, value func(figures) T, less func(a, b T) bool) T {
	values := make([]T, 0, len(all))
	for _, f := range all {
		values = append(values, value(f))
	}
	sort.Slice(values, func(i, j int) bool { return less(values[i], values[j]) })
	return values[len(values)/2]
}

func write(all []figures) error {
	number := func(name, format string, value func(figures) float64, release string) string {
		m := median(all, value, func(a, b float64) bool { return a < b })
		return fmt.Sprintf("| %s | %s | %s |\n", name, fmt.Sprintf(format, m), release)
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return err
	}
	text := &strings.Builder{}
	fmt.Fprintf(text, "# Benchmarks\n\nWritten by `make bench` on %s: medians of %d rounds on a running landscape with two more shoots and a fleet;\n%d cores, Linux %s. Images were present.\n\n", time.Now().Format(time.DateOnly), len(all), runtime.NumCPU(), strings.TrimSpace(string(kernel)))
	text.WriteString("| what | measured | first release |\n|---|---|---|\n")
	text.WriteString(number("`kubectl apply` of a Shoot → its API answers", "%.1f s", func(f figures) float64 { return f.api.Seconds() }, "20 s"))
	text.WriteString(number("… → first node Ready", "%.1f s", func(f figures) float64 { return f.node.Seconds() }, "60 s"))
	text.WriteString(number("… → first pod runs", "%.1f s", func(f figures) float64 { return f.pod.Seconds() }, "75 s"))
	text.WriteString(number("memory of one shoot control plane (PSS, all pods of its namespace)", "%.0f MiB", func(f figures) float64 { return float64(f.memory >> 20) }, "600 MB"))
	text.WriteString(number("idle CPU of one shoot control plane, over "+strconv.Itoa(int(idlePeriod.Seconds()))+" s", "%.1f %% of a core", func(f figures) float64 { return f.cpu * 100 }, "6 %"))
	text.WriteString("\n`make up` prints its own times; see the closing line of its output.\n")
	return os.WriteFile(report, []byte(text.String()), 0o644)
}
