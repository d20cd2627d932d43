// Package operatingsystemconfig is the controller of OperatingSystemConfigs for Debian: purpose provision becomes user
// data; purpose reconcile needs nothing beyond what node-agent does on any system with systemd.
package operatingsystemconfig

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trellis-garden/trellis/extensions/os-debian/pkg/userdata"
	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// Type is the spec.type this extension is responsible for: the name of the machine image.
const Type = "debian"

// Actuator writes user data.
type Actuator struct {
	Client client.Client
}

// Reconcile renders the user data into Secret osc-result-<name>, key cloud_config.
func (a *Actuator) Reconcile(ctx context.Context, _ logr.Logger, osc *extensionsv1alpha1.OperatingSystemConfig,
	_ *cluster.Cluster) error {
	if osc.Spec.Purpose != extensionsv1alpha1.OperatingSystemConfigPurposeProvision {
		return nil
	}
	script, err := userdata.Render(osc.Spec.Files, osc.Spec.Units, func(name, key string) ([]byte, error) {
		return a.secretKey(ctx, osc.Namespace, name, key)
	})
	if err != nil {
		return err
	}
	secret := resultSecret(osc)
	if _, err := controllerutil.CreateOrPatch(ctx, a.Client, secret, func() error {
		secret.Data = map[string][]byte{"cloud_config": []byte(script)}
		return controllerutil.SetControllerReference(osc, secret, a.Client.Scheme())
	}); err != nil {
		return fmt.Errorf("writing user data to Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	osc.Status.CloudConfig = &extensionsv1alpha1.CloudConfig{
		SecretRef: corev1.SecretReference{Namespace: secret.Namespace, Name: secret.Name},
	}
	return nil
}

// Delete removes the user data.
func (a *Actuator) Delete(ctx context.Context, _ logr.Logger, osc *extensionsv1alpha1.OperatingSystemConfig,
	_ *cluster.Cluster) error {
	return client.IgnoreNotFound(a.Client.Delete(ctx, resultSecret(osc)))
}

func resultSecret(osc *extensionsv1alpha1.OperatingSystemConfig) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: osc.Namespace, Name: "osc-result-" + osc.Name}}
}

func (a *Actuator) secretKey(ctx context.Context, namespace, name, key string) ([]byte, error) {
	secret := &corev1.Secret{}
	if err := a.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		return nil, fmt.Errorf("content.secretRef: %w", err)
	}
	data, ok := secret.Data[key]
	if !ok {
		return nil, fmt.Errorf("content.secretRef: Secret %s/%s has no key %q", namespace, name, key)
	}
	return data, nil
}
