// Package access reaches the API server of a shoot from the seed, and through the tunnel its kubelets.
package access

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/answers"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/kubeconfig"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// AdminConfig returns administrative access to the API server of the shoot whose control plane lies in a namespace of
// the seed, over the network of the seed. What that answers is bounded: the shoot's owner may have a server of an own
// answer in its place.
func AdminConfig(ctx context.Context, seed client.Reader, namespace string) (*rest.Config, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: namespace, Name: kubeapiserver.InternalKubeconfigSecret}
	if err := seed.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the shoot: %w", err)
	}
	config, err := kubeconfig.Contained(secret.Data[secrets.DataKeyKubeconfig])
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of the shoot in Secret %s: %w", key, err)
	}
	config.QPS = -1
	config.Timeout = 10 * time.Second
	return answers.FromShoot(config), nil
}

// Clientset is a client of the API server in a namespace of the seed.
func Clientset(ctx context.Context, seed client.Reader, namespace string) (kubernetes.Interface, error) {
	config, err := AdminConfig(ctx, seed, namespace)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}
