// Package cluster reads what an extension may know of the garden: the Cluster object of a control plane's namespace
// with Shoot, Seed and CloudProfile inside.
package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/answers"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/kubeconfig"
)

// internalSecret holds the kubeconfig with which processes in the seed administrate a shoot.
const internalSecret = gardencorev1beta1.SecretNameGardenerInternal

// Cluster is a shoot as extensions see it. Its methods may be called on nil: there is no shoot then.
type Cluster struct {
	// Name is that of the control plane's namespace, the technical ID of the shoot.
	Name string
	// Annotations are those of the Cluster object.
	Annotations  map[string]string
	Shoot        *gardencorev1beta1.Shoot
	Seed         *gardencorev1beta1.Seed
	CloudProfile *gardencorev1beta1.CloudProfile
}

// Get reads the Cluster of a namespace; nil when the namespace is not that of a shoot.
func Get(ctx context.Context, reader client.Reader, namespace string) (*Cluster, error) {
	if namespace == "" {
		return nil, nil
	}
	var object extensionsv1alpha1.Cluster
	err := reader.Get(ctx, client.ObjectKey{Name: namespace}, &object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Cluster %s: %w", namespace, err)
	}
	return Decode(&object)
}

// Decode makes the embedded objects typed.
func Decode(object *extensionsv1alpha1.Cluster) (*Cluster, error) {
	result := &Cluster{Name: object.Name, Annotations: object.Annotations}
	var err error
	if result.Shoot, err = decode[gardencorev1beta1.Shoot](object.Name, "shoot", &object.Spec.Shoot); err != nil {
		return nil, err
	}
	if result.Seed, err = decode[gardencorev1beta1.Seed](object.Name, "seed", object.Spec.Seed); err != nil {
		return nil, err
	}
	result.CloudProfile, err = decode[gardencorev1beta1.CloudProfile](object.Name, "cloudProfile",
		&object.Spec.CloudProfile)
	return result, err
}

func decode[T any](cluster, field string, raw *runtime.RawExtension) (*T, error) {
	if raw == nil || len(raw.Raw) == 0 {
		return nil, nil
	}
	value := new(T)
	if err := json.Unmarshal(raw.Raw, value); err != nil {
		return nil, fmt.Errorf("Cluster %s: decoding spec.%s: %w", cluster, field, err)
	}
	return value, nil
}

// HasFailed tells whether the shoot's last operation failed for good; extensions leave such shoots alone.
func (c *Cluster) HasFailed() bool {
	return c != nil && c.Shoot != nil && c.Shoot.Status.LastOperation != nil &&
		c.Shoot.Status.LastOperation.State == gardencorev1beta1.LastOperationStateFailed
}

// IsForceDeleted tells whether the shoot's owner gave up on its infrastructure.
func (c *Cluster) IsForceDeleted() bool {
	return c != nil && c.Shoot != nil && c.Shoot.DeletionTimestamp != nil &&
		c.Shoot.Annotations[gardencorev1beta1.AnnotationConfirmationForceDeletion] == "true"
}

// IsHibernated tells whether the shoot is to be without machines.
func (c *Cluster) IsHibernated() bool {
	return c != nil && c.Shoot != nil && c.Shoot.Spec.Hibernation != nil &&
		c.Shoot.Spec.Hibernation.Enabled != nil && *c.Shoot.Spec.Hibernation.Enabled
}

// Availability is what failures the control plane outlasts, and with it all that extensions run for it.
func (c *Cluster) Availability() component.Availability {
	if c == nil || c.Shoot == nil {
		return component.Availability{}
	}
	return component.Availability{
		Tolerance:    gardencorev1beta1.FailureToleranceOf(&c.Shoot.Spec),
		IsSeedSingle: c.Annotations[gardencorev1beta1.AnnotationSingleNodeSeed] == "true",
	}
}

// GenericTokenKubeconfig is the name of the Secret with the kubeconfig that components in the control plane use.
func (c *Cluster) GenericTokenKubeconfig() (string, error) {
	return c.annotation(gardencorev1beta1.AnnotationGenericTokenKubeconfigSecretName)
}

// EgressClient is the name of the Secret with tls.crt, tls.key and ca.crt by which components in the control plane that
// connect to addresses of users leave the seed, through its egress proxy.
func (c *Cluster) EgressClient() (string, error) {
	return c.annotation(gardencorev1beta1.AnnotationEgressClientSecretName)
}

func (c *Cluster) annotation(key string) (string, error) {
	if c == nil {
		return "", fmt.Errorf("there is no Cluster for this namespace")
	}
	value := c.Annotations[key]
	if value == "" {
		return "", fmt.Errorf("Cluster %s: annotation %s is not set yet", c.Name, key)
	}
	return value, nil
}

// RESTConfig gives access to the shoot as administrator, over the network of the seed. What the shoot answers is
// bounded.
func RESTConfig(ctx context.Context, reader client.Reader, namespace string) (*rest.Config, error) {
	var secret corev1.Secret
	if err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: internalSecret}, &secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", namespace, internalSecret, err)
	}
	config, err := kubeconfig.Contained(secret.Data["kubeconfig"])
	if err != nil {
		return nil, fmt.Errorf("Secret %s/%s: key kubeconfig: %w", namespace, internalSecret, err)
	}
	config.QPS, config.Burst = 50, 100
	return answers.FromShoot(config), nil
}

// ShootClient returns a client for the shoot of a namespace.
func ShootClient(ctx context.Context, reader client.Reader, namespace string,
	scheme *runtime.Scheme) (client.Client, error) {
	config, err := RESTConfig(ctx, reader, namespace)
	if err != nil {
		return nil, err
	}
	shoot, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("client for the shoot of namespace %s: %w", namespace, err)
	}
	return shoot, nil
}
