package apiserver

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

const (
	kubeAPIServerInterval = 250 * time.Millisecond
	kubeAPIServerAttempts = 20

	// authenticationConfigMap in kube-system says how kube-apiserver identifies itself as a proxy.
	authenticationConfigMap = "extension-apiserver-authentication"
)

// waitForKubeAPIServer waits until the garden's kube-apiserver tells how it authenticates requests that it passes on.
// When both start together, as after a reboot, that takes a moment; ending instead would cost the pod's restart delay.
func waitForKubeAPIServer(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("--authentication-kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("--authentication-kubeconfig: %w", err)
	}
	attempts := 0
	return wait.PollUntilContextCancel(ctx, kubeAPIServerInterval, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, authenticationConfigMap,
			metav1.GetOptions{})
		if err == nil {
			return true, nil
		}
		if attempts++; attempts%kubeAPIServerAttempts == 0 {
			klog.FromContext(ctx).Info("Waiting for the garden's kube-apiserver", "server", config.Host, "reason",
				err.Error())
		}
		return false, nil
	})
}
