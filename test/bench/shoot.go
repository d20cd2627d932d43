package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	benchShoot = "bench"
	technical  = "shoot--demo--" + benchShoot
)

// figures are of one shoot, from its creation on.
type figures struct {
	api, node, pod time.Duration
	// memory is the proportional set size of the control plane in bytes, cpu its share of one core when idle.
	memory int64
	cpu    float64
}

// measureShoots creates a shoot, uses it and deletes it, several times.
func measureShoots(ctx context.Context, l landscape) ([]measurement, error) {
	var all []figures
	for round := range rounds {
		f, err := l.shoot(ctx)
		if err != nil {
			return nil, fmt.Errorf("shoot, round %d: %w", round+1, err)
		}
		fmt.Printf("  shoot: API %.1fs, node %.1fs, pod %.1fs, %d MiB, %.1f %% of a core\n", f.api.Seconds(),
			f.node.Seconds(), f.pod.Seconds(), f.memory>>20, f.cpu*100)
		all = append(all, f)
	}
	middle := func(value func(figures) float64) float64 {
		values := make([]float64, 0, len(all))
		for _, f := range all {
			values = append(values, value(f))
		}
		return median(values)
	}
	how := fmt.Sprintf("median of %d shoots like member1, on a landscape with two shoots and a fleet", rounds)
	return []measurement{
		{
			Name:  "`kubectl apply` of a Shoot → its API answers",
			Value: middle(func(f figures) float64 { return f.api.Seconds() }), Unit: "s", How: how,
		},
		{
			Name:  "`kubectl apply` of a Shoot → first node Ready",
			Value: middle(func(f figures) float64 { return f.node.Seconds() }), Unit: "s", How: how,
		},
		{
			Name:  "`kubectl apply` of a Shoot → first pod runs",
			Value: middle(func(f figures) float64 { return f.pod.Seconds() }), Unit: "s", How: how,
		},
		{
			Name:  "memory of one shoot control plane",
			Value: middle(func(f figures) float64 { return float64(f.memory) / 1e6 }), Unit: "MB",
			How: "PSS of all processes of the pods in the shoot's namespace in the seed",
		},
		{
			Name: "idle CPU of one shoot control plane", Value: middle(func(f figures) float64 { return f.cpu * 100 }),
			Unit: "% of a core", How: fmt.Sprintf("the same processes over %s, %s after the shoot was ready",
				idlePeriod, idlePeriod),
		},
	}, nil
}

func (l landscape) shoot(ctx context.Context) (figures, error) {
	garden := filepath.Join(l.state, "garden.kubeconfig")
	example, err := os.ReadFile("landscape/local/examples/shoot-member1.yaml")
	if err != nil {
		return figures{}, err
	}
	manifest := strings.NewReplacer("name: member1", "name: "+benchShoot, "10.180.1.0/24", "10.180.8.0/24",
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
		return l.kubectl(ctx, garden, "", "-n", "garden-demo", "get", "shoot", benchShoot, "-o",
			"jsonpath={.status.lastOperation.state}")
	}); err != nil {
		return figures{}, err
	}
	if result.memory, result.cpu, err = l.usage(ctx); err != nil {
		return figures{}, err
	}
	if _, err := l.kubectl(ctx, garden, "", "-n", "garden-demo", "annotate", "shoot", benchShoot,
		"confirmation.gardener.cloud/deletion=true"); err != nil {
		return figures{}, err
	}
	_, err = l.kubectl(ctx, garden, "", "-n", "garden-demo", "delete", "shoot", benchShoot, "--timeout=10m")
	return result, err
}

// ready asks for a kubeconfig as users do and then asks the API server whether it is ready.
func (l landscape) ready(ctx context.Context, path string) (string, error) {
	command := exec.CommandContext(ctx, "bin/trellisctl", "--config", filepath.Join(l.state, "trellisctl.yaml"),
		"kubeconfig", "--garden", l.name, "--project", "demo", "--shoot", benchShoot)
	out, err := command.Output()
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, out, 0o600); err != nil {
		return "", err
	}
	return l.kubectl(ctx, path, "", "get", "--raw", "/readyz")
}

// idlePeriod is how long the control plane is left alone, and then watched for its idle CPU.
const idlePeriod = 30 * time.Second

// usage sums up all processes of the control plane's pods, which are found by their cgroups.
func (l landscape) usage(ctx context.Context) (memory int64, cpu float64, err error) {
	uids, err := l.kubectl(ctx, filepath.Join(l.state, "runtime.kubeconfig"), "", "-n", technical, "get", "pods", "-o",
		"jsonpath={.items[*].metadata.uid}")
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
		out, err := exec.CommandContext(ctx, "bin/landscape", "exec", "--name", l.name, "--", "sh", "-c", script,
			strings.TrimSpace(uids)).Output()
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
