package workers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/access"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/inplace"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
)

const (
	// checksumAnnotation on a Node is the checksum of the configuration that its machine runs.
	checksumAnnotation = "checksum/cloud-config-data"
)

// checkTunnel asks a kubelet for its health by way of kube-apiserver: that goes through the tunnel.
func (w *Workers) checkTunnel(ctx context.Context) error {
	clientset, err := access.Clientset(ctx, w.Seed, w.Plan.Namespace)
	if err != nil {
		return err
	}
	nodes, err := clientset.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	return access.TunnelError(ctx, clientset, nodes.Items)
}

// checkNodeConfigurations compares what node-agents report with what they were given. Nodes of an older pool key are
// about to be replaced and do not count.
func (w *Workers) checkNodeConfigurations(ctx context.Context) error {
	clientset, err := access.Clientset(ctx, w.Seed, w.Plan.Namespace)
	if err != nil {
		return err
	}
	nodes, err := clientset.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	var problems []error
	var waiting []string
	if w.Plan.UpdatesInPlace() {
		waiting = inplace.AwaitingOwner(&w.Status.Current().Status)
	}
	for _, pool := range w.Plan.Pools {
		if slices.Contains(waiting, pool.Worker.Name) {
			continue // for its owner, who says when machines are updated
		}
		checksum, err := w.configurationChecksum(ctx, pool)
		if err != nil {
			return err
		}
		for _, node := range nodes.Items {
			if node.Labels[gardencorev1beta1.LabelWorkerPool] != pool.Worker.Name || !access.NodeReady(&node) {
				continue
			}
			if node.Annotations[checksumAnnotation] != checksum {
				problems =
					append(problems, fmt.Errorf("node %s does not run the latest configuration of pool %s yet; see "+
						"the log of its node-agent", node.Name, pool.Worker.Name))
			}
		}
	}
	return errors.Join(problems...)
}

// configurationChecksum is the checksum of what node-agents of a pool were given.
func (w *Workers) configurationChecksum(ctx context.Context, pool plan.Pool) (string, error) {
	_, name := oscNames(pool)
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	if err := w.Seed.Get(ctx, w.Plan.Key(name), osc); err != nil {
		return "", err
	}
	secret, err := nodeAgentSecret(pool, osc)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(secret.Data[oscKey])
	return hex.EncodeToString(sum[:]), nil
}
