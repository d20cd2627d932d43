package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/test/prober"
)

// The versions between which a shoot is upgraded.
const (
	olderVersion = "1.35.4"
	newerVersion = "1.36.3"
)

// The figures of an upgrade.
const (
	figureUpgrade       = "upgrade of a control plane to the next minor version: `kubectl patch` → Succeeded"
	figureUpgradeSilent = "upgrade of a control plane: longest time without an answer of the API"
	figureUpgradeWorker = "upgrade of a worker to the next minor version: `kubectl patch` → Succeeded"
)

const (
	upgradedShoot  = "upgraded"
	upgradeTimeout = time.Hour
)

// measureUpgrade upgrades a shoot on a landscape that has the older version of Kubernetes, too: first its control
// plane, then its worker.
func measureUpgrade(ctx context.Context, l landscape) ([]measurement, error) {
	ctx, cancel := context.WithTimeout(ctx, upgradeTimeout)
	defer cancel()
	// One that runs already may not have the older version.
	if err := l.run(ctx, "down"); err != nil {
		return nil, err
	}
	if err := l.run(ctx, "up", "--kubernetes-version", olderVersion); err != nil {
		return nil, err
	}
	manifest, err := olderShoot(upgradedShoot)
	if err != nil {
		return nil, err
	}
	shoot := filepath.Join(os.TempDir(), "trellis-bench-"+upgradedShoot+".kubeconfig")
	defer os.Remove(shoot)
	if err := l.createShoot(ctx, upgradedShoot, manifest, shoot); err != nil {
		return nil, err
	}
	if err := l.checkVersions(ctx, shoot, olderVersion, olderVersion); err != nil {
		return nil, err
	}
	found, err := l.upgradeControlPlane(ctx, shoot)
	if err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	worker, err := l.upgradeWorker(ctx, shoot)
	if err != nil {
		return found, fmt.Errorf("worker: %w", err)
	}
	return append(found, worker), l.deleteShoots(ctx, 10*time.Minute, upgradedShoot)
}

// olderShoot is the manifest of a shoot like member1 of the older version, whose pool says that itself and so does not
// follow the control plane.
func olderShoot(name string) (string, error) {
	manifest, err := shootLikeMember1(name)
	if err != nil {
		return "", err
	}
	const last = "      maximum: 1\n"
	if !strings.HasSuffix(manifest, last) || strings.Count(manifest, newerVersion) != 1 {
		return "", fmt.Errorf("the shoot member1 does not end in %q, or does not have version %s once", last,
			newerVersion)
	}
	return strings.Replace(manifest, newerVersion, olderVersion, 1) + "      maxSurge: 1\n      maxUnavailable: 0\n" +
		"      kubernetes:\n        version: " + olderVersion + "\n", nil
}

func (l landscape) upgradeControlPlane(ctx context.Context, kubeconfig string) ([]measurement, error) {
	ask, err := prober.API(kubeconfig)
	if err != nil {
		return nil, err
	}
	asking := prober.Start(ctx, ask)
	defer asking.Stop()
	took, err := l.setVersion(ctx, "/spec/kubernetes/version")
	if err != nil {
		return nil, err
	}
	counts := asking.Stop()
	fmt.Printf("  control plane in %.1fs; API: %s\n", took.Seconds(), counts)
	if err := allAnswered(counts); err != nil {
		return nil, err
	}
	if err := l.checkVersions(ctx, kubeconfig, newerVersion, olderVersion); err != nil {
		return nil, err
	}
	return []measurement{
		{
			Name: figureUpgrade, Value: took.Seconds(), Unit: "s",
			How: fmt.Sprintf("one run with a shoot like member1, %s to %s, one pod of kube-apiserver and of each etcd",
				olderVersion, newerVersion),
		},
		{Name: figureUpgradeSilent, Value: counts.Longest.Seconds(), Unit: "s", How: howProbed(counts)},
	}, nil
}

func (l landscape) upgradeWorker(ctx context.Context, kubeconfig string) (measurement, error) {
	took, err := l.setVersion(ctx, "/spec/provider/workers/0/kubernetes/version")
	if err != nil {
		return measurement{}, err
	}
	fmt.Printf("  worker in %.1fs\n", took.Seconds())
	return measurement{
		Name: figureUpgradeWorker, Value: took.Seconds(), Unit: "s",
		How: "the same shoot; its only node is replaced: another one comes before it is drained",
	}, l.checkVersions(ctx, kubeconfig, newerVersion, newerVersion)
}

// setVersion has a field of the Shoot have the newer version, and returns how long it took until that was done.
func (l landscape) setVersion(ctx context.Context, path string) (time.Duration, error) {
	start := time.Now()
	if _, err := l.garden(ctx, "", "patch", "shoot", upgradedShoot, "--type=json", "-p",
		fmt.Sprintf(`[{"op": "replace", "path": %q, "value": %q}]`, path, newerVersion)); err != nil {
		return 0, err
	}
	err := l.waitForShoot(ctx, upgradedShoot, gardencorev1beta1.LastOperationTypeReconcile, 20*time.Minute)
	return time.Since(start), err
}

// checkVersions makes sure that an API server, and the only node, have these versions.
func (l landscape) checkVersions(ctx context.Context, kubeconfig, server, node string) error {
	return eventually(ctx, 3*time.Minute, shootPause, func(ctx context.Context) error {
		out, err := l.kubectl(ctx, kubeconfig, "", "get", "--raw", "/version")
		if err != nil {
			return err
		}
		if !strings.Contains(out, "v"+server) {
			return fmt.Errorf("the API server has another version than v%s: %s", server, out)
		}
		out, err = l.kubectl(ctx, kubeconfig, "", "get", "nodes", "-o",
			"jsonpath={.items[*].status.nodeInfo.kubeletVersion}")
		if err != nil {
			return err
		}
		if out != "v"+node {
			return fmt.Errorf("the nodes have versions %q, want v%s", out, node)
		}
		return nil
	})
}
