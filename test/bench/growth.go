package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/test/prober"
)

// The figures of a control plane that grows.
const (
	figureGrowth       = "control plane grows from one node to three: `kubectl patch` → Succeeded"
	figureGrowthSilent = "control plane grows from one node to three: longest time without an answer of the API"
	figureWritesOfOne  = "ConfigMaps created in a shoot with one member of etcd"
	figureWritesOf3    = "ConfigMaps created in a shoot with three members of etcd, on one machine"
)

const (
	grownShoot = "grown"
	// growthWrites are counted before and after.
	growthWrites  = 1000
	growthTimeout = 40 * time.Minute
)

// measureGrowth has the control plane of a shoot with a worker outlast the failure of a node.
func measureGrowth(ctx context.Context, l landscape) ([]measurement, error) {
	ctx, cancel := context.WithTimeout(ctx, growthTimeout)
	defer cancel()
	log.SetLogger(logr.Discard())
	if err := l.run(ctx, "up"); err != nil {
		return nil, err
	}
	manifest, err := shootLikeMember1(grownShoot)
	if err != nil {
		return nil, err
	}
	shoot := filepath.Join(os.TempDir(), "trellis-bench-"+grownShoot+".kubeconfig")
	defer os.Remove(shoot)
	if err := l.createShoot(ctx, grownShoot, manifest, shoot); err != nil {
		return nil, err
	}
	before, err := writeRate(ctx, shoot)
	if err != nil {
		return nil, fmt.Errorf("writing with one member: %w", err)
	}
	fmt.Printf("  one member: %.0f writes per s\n", before)
	took, counts, err := l.grow(ctx, shoot)
	if err != nil {
		return nil, err
	}
	fmt.Printf("  grown in %.1fs; API: %s\n", took.Seconds(), counts)
	after, err := writeRate(ctx, shoot)
	if err != nil {
		return nil, fmt.Errorf("writing with three members: %w", err)
	}
	fmt.Printf("  three members: %.0f writes per s\n", after)
	return growthFigures(took, counts, before, after), l.deleteShoots(ctx, 10*time.Minute, grownShoot)
}

// growthFigures tell what was measured.
func growthFigures(took time.Duration, counts prober.Counts, before, after float64) []measurement {
	writes := fmt.Sprintf("%d ConfigMaps of 1 kB by %d clients, through the gateway, after %d others", growthWrites,
		gardenClients, growthWarmUp)
	return []measurement{
		{
			Name: figureGrowth, Value: took.Seconds(), Unit: "s",
			How: "one run with a shoot like member1, whose failureTolerance becomes node: three members of each etcd " +
				"and two pods of kube-apiserver",
		},
		{
			Name: figureGrowthSilent, Value: counts.Longest.Seconds(), Unit: "s",
			How: howProbed(counts) + "; the first member of etcd is started again",
		},
		{Name: figureWritesOfOne, Value: before, Unit: "per s", How: writes},
		{Name: figureWritesOf3, Value: after, Unit: "per s", How: "the same, when it had grown"},
	}
}

// howProbed tells how an API was asked, and what came of it.
func howProbed(counts prober.Counts) string {
	return fmt.Sprintf("a Namespace is read ten times a second, each time with a new connection: %d requests, %d "+
		"answered when tried again a second later, %d failed", counts.All, counts.Retried, counts.Failed)
}

// createShoot creates a shoot, waits until that is done, and writes a kubeconfig to a file.
func (l landscape) createShoot(ctx context.Context, name, manifest, kubeconfig string) error {
	if err := l.applyShoots(ctx, manifest); err != nil {
		return err
	}
	if err := l.waitForShoot(ctx, name, gardencorev1beta1.LastOperationTypeCreate, 10*time.Minute); err != nil {
		return err
	}
	return l.waitForAPI(ctx, name, kubeconfig)
}

// grow asks for three nodes, and the API whether it is there, until the Shoot says that it is done.
func (l landscape) grow(ctx context.Context, kubeconfig string) (time.Duration, prober.Counts, error) {
	ask, err := prober.API(kubeconfig)
	if err != nil {
		return 0, prober.Counts{}, err
	}
	asking := prober.Start(ctx, ask)
	defer asking.Stop()
	start := time.Now()
	if _, err := l.garden(ctx, "", "patch", "shoot", grownShoot, "--type=merge", "-p",
		`{"spec":{"controlPlane":{"highAvailability":{"failureTolerance":{"type":"node"}}}}}`); err != nil {
		return 0, prober.Counts{}, err
	}
	err = l.waitForShoot(ctx, grownShoot, gardencorev1beta1.LastOperationTypeReconcile, 15*time.Minute)
	took := time.Since(start)
	if err != nil {
		return 0, prober.Counts{}, err
	}
	counts := asking.Stop()
	return took, counts, errors.Join(allAnswered(counts), l.checkGrown(ctx))
}

// allAnswered says that no request was answered: then nothing was measured.
func allAnswered(counts prober.Counts) error {
	if counts.Failed >= counts.All {
		return fmt.Errorf("the API answered no request: %s", counts)
	}
	return nil
}

// checkGrown makes sure that what is measured has grown.
func (l landscape) checkGrown(ctx context.Context) error {
	return eventually(ctx, 2*time.Minute, shootPause, func(ctx context.Context) error {
		out, err := l.kubectl(ctx, l.runtimeKubeconfig(), "", "-n", technicalNamespace(grownShoot), "get",
			"statefulset/etcd-main", "statefulset/etcd-events", "deployment/kube-apiserver", "-o",
			"jsonpath={range .items[*]}{.status.readyReplicas}/{.spec.replicas} {end}")
		if err != nil {
			return err
		}
		if got, want := strings.TrimSpace(out), "3/3 3/3 2/2"; got != want {
			return fmt.Errorf("etcd-main, etcd-events and kube-apiserver have %q ready pods, want %q", got, want)
		}
		return nil
	})
}

// growthWarmUp are written before they are counted.
const growthWarmUp = 200

// writeRate creates ConfigMaps in a cluster, and deletes them.
func writeRate(ctx context.Context, kubeconfig string) (perSecond float64, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return 0, err
	}
	config.QPS = -1
	cluster, err := client.New(config, client.Options{})
	if err != nil {
		return 0, err
	}
	labels := map[string]string{"bench": "writes"}
	create := func(ctx context.Context, number int) error {
		return cluster.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("bench-%d", number), Labels: labels,
			},
			Data: map[string]string{"text": strings.Repeat("x", 1000)},
		})
	}
	if err := inParallel(ctx, growthWarmUp, create); err != nil {
		return 0, err
	}
	start := time.Now()
	err = inParallel(ctx, growthWrites, func(ctx context.Context, number int) error {
		return create(ctx, growthWarmUp+number)
	})
	perSecond = growthWrites / time.Since(start).Seconds()
	return perSecond, errors.Join(err, cluster.DeleteAllOf(ctx, &corev1.ConfigMap{},
		client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels(labels)))
}
