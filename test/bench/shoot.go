package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const benchShoot = "bench"

// figures are of one shoot, from its creation on.
type figures struct {
	api, node, pod time.Duration
	// memory is the proportional set size of the control plane in bytes, cpu its share of one core when idle.
	memory int64
	cpu    float64
}

// measureShoots creates a shoot, uses it and deletes it, several times.
func measureShoots(ctx context.Context, l landscape) ([]measurement, error) {
	if err := l.run(ctx, "up"); err != nil {
		return nil, err
	}
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
	manifest, err := shootLikeMember1(benchShoot)
	if err != nil {
		return figures{}, err
	}
	start := time.Now()
	if err := l.applyShoots(ctx, manifest); err != nil {
		return figures{}, err
	}
	var result figures
	shoot := filepath.Join(os.TempDir(), "trellis-bench.kubeconfig")
	defer os.Remove(shoot)
	if err := l.waitForAPI(ctx, benchShoot, shoot); err != nil {
		return figures{}, err
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
	if err := l.waitForShoot(ctx, benchShoot, gardencorev1beta1.LastOperationTypeCreate, 10*time.Minute); err != nil {
		return figures{}, err
	}
	if result.memory, result.cpu, err = l.usage(ctx, technicalNamespace(benchShoot)); err != nil {
		return figures{}, err
	}
	return result, l.deleteShoots(ctx, 10*time.Minute, benchShoot)
}
