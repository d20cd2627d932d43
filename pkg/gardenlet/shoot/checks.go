package shoot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const (
	// checksumAnnotation on a Node is the checksum of the configuration that its machine runs.
	checksumAnnotation = "checksum/cloud-config-data"
	// tunnelTimeout bounds one request through the tunnel.
	tunnelTimeout = 5 * time.Second
)

// shootClientset is a client of the shoot's API server.
func (o *Operation) shootClientset(ctx context.Context) (kubernetes.Interface, error) {
	return shootClientset(ctx, o.Seed, o.Plan.Namespace)
}

// shootClientset is a client of the API server in a namespace of the seed.
func shootClientset(ctx context.Context, seed client.Reader, namespace string) (kubernetes.Interface, error) {
	config, err := shootConfig(ctx, seed, namespace)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// checkTunnel asks a kubelet for its health by way of kube-apiserver: that goes through the tunnel.
func (o *Operation) checkTunnel(ctx context.Context) error {
	clientset, err := o.shootClientset(ctx)
	if err != nil {
		return err
	}
	nodes, err := clientset.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	return tunnelError(ctx, clientset, nodes.Items)
}

// tunnelError returns nil when one ready node answers through the tunnel, or there is none to ask.
func tunnelError(ctx context.Context, clientset kubernetes.Interface, nodes []corev1.Node) error {
	var last error
	for _, node := range nodes {
		if !nodeReady(&node) {
			continue
		}
		if last = askKubelet(ctx, clientset, node.Name); last == nil {
			return nil
		}
	}
	return last
}

// askKubelet requests /healthz of a kubelet through kube-apiserver's proxy.
func askKubelet(ctx context.Context, clientset kubernetes.Interface, node string) error {
	ctx, cancel := context.WithTimeout(ctx, tunnelTimeout)
	defer cancel()
	_, err := clientset.CoreV1().RESTClient().Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("healthz").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("reaching the kubelet of node %s through the tunnel: %w", node, err)
	}
	return nil
}

// nodeReady says whether the node's condition Ready is True.
func nodeReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// checkNodeConfigurations compares what node-agents report with what they were given. Nodes of an older pool key are
// about to be replaced and do not count.
func (o *Operation) checkNodeConfigurations(ctx context.Context) error {
	clientset, err := o.shootClientset(ctx)
	if err != nil {
		return err
	}
	nodes, err := clientset.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	var problems []error
	for _, pool := range o.Plan.Pools {
		checksum, err := o.configurationChecksum(ctx, pool)
		if err != nil {
			return err
		}
		for _, node := range nodes.Items {
			if node.Labels[gardencorev1beta1.LabelWorkerPool] != pool.Worker.Name || !nodeReady(&node) {
				continue
			}
			if node.Annotations[checksumAnnotation] != checksum {
				problems = append(problems, fmt.Errorf("node %s does not run the latest configuration of pool %s yet; see the log of its node-agent", node.Name, pool.Worker.Name))
			}
		}
	}
	return errors.Join(problems...)
}

// configurationChecksum is the checksum of what node-agents of a pool were given.
func (o *Operation) configurationChecksum(ctx context.Context, pool PoolPlan) (string, error) {
	_, name := oscNames(pool)
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	if err := o.Seed.Get(ctx, o.key(name), osc); err != nil {
		return "", err
	}
	secret, err := nodeAgentSecret(pool, osc)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(secret.Data[oscKey])
	return hex.EncodeToString(sum[:]), nil
}
