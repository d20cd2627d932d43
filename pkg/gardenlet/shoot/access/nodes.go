package access

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

// tunnelTimeout bounds one request through the tunnel.
const tunnelTimeout = 5 * time.Second

// TunnelError returns nil when one ready node answers through the tunnel, or there is none to ask.
func TunnelError(ctx context.Context, clientset kubernetes.Interface, nodes []corev1.Node) error {
	var last error
	for _, node := range nodes {
		if !NodeReady(&node) {
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
	_, err := clientset.CoreV1().RESTClient().
		Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("healthz").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("reaching the kubelet of node %s through the tunnel: %w", node, err)
	}
	return nil
}

// NodeReady says whether the node's condition Ready is True.
func NodeReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
