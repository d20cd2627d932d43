// Package shootaccess lets a pod that an extension runs beside a control plane, in the shoot's namespace of the seed,
// reach the API server of the shoot: it has resource-manager write a token of its own, and gives the pod that token
// and the kubeconfig that all such pods share. The pod is as narrow as those of the control plane are.
package shootaccess

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
)

const (
	// KubeconfigFile is where the pod finds its kubeconfig for the shoot.
	KubeconfigFile = component.ShootKubeconfigFile

	// tokenTimeout bounds the wait for resource-manager.
	tokenTimeout = 30 * time.Second
	tokenPoll    = 100 * time.Millisecond
)

// Request asks for a token of the service account of that name in kube-system of the shoot, and waits for it: a pod
// that is started without it would be started again only much later.
func Request(ctx context.Context, c client.Client, namespace, name string) error {
	secret := emptySecret(namespace, name)
	_, err := controllerutil.CreateOrPatch(ctx, c, secret, func() error {
		component.RequestShootToken(secret, name)
		return nil
	})
	if err != nil {
		return fmt.Errorf("Secret %s/%s: %w", namespace, secret.Name, err)
	}
	err = wait.PollUntilContextTimeout(ctx, tokenPoll, tokenTimeout, true, func(ctx context.Context) (bool, error) {
		if len(secret.Data[resourcesv1alpha1.DataKeyToken]) > 0 {
			return true, nil
		}
		return false, c.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	})
	if err != nil {
		key := client.ObjectKeyFromObject(secret)
		return fmt.Errorf("Secret %s has no token for the shoot; is resource-manager running? %w", key, err)
	}
	return nil
}

// Revoke removes the Secret with the token. It succeeds when there is none.
func Revoke(ctx context.Context, c client.Client, namespace, name string) error {
	secret := emptySecret(namespace, name)
	if err := client.IgnoreNotFound(c.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("deleting Secret %s/%s: %w", namespace, secret.Name, err)
	}
	return nil
}

func emptySecret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: component.ShootAccessSecret(name)}}
}

// Pod returns the pod with kubeconfig and token in all of its containers, and with no more rights than pods of
// control planes have: no token for the seed, no root, no capabilities, a root that cannot be written, the runtime's
// system call filter. It has the priority of the controllers of control planes. kubeconfigSecret is what
// Cluster.GenericTokenKubeconfig says.
func Pod(pod corev1.PodSpec, kubeconfigSecret, name string) corev1.PodSpec {
	pod = component.HardenedPod(component.PriorityControlPlane300, pod)
	for i := range pod.Containers {
		pod.Containers[i].SecurityContext = component.HardenedContainer()
	}
	component.MountShootAccess(&pod, kubeconfigSecret, name)
	return pod
}
