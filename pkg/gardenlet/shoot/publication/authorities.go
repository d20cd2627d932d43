// Package publication writes to the garden what users get to know of their shoot, and what is done in their name: its
// certificate authorities, and the key to its machines.
package publication

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/tasks"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// Publication writes for one shoot.
type Publication struct {
	Shoot plan.Identity
	// Workerless shoots have no machines; SSHAccess says whether users may log in to those of others.
	Workerless, SSHAccess bool
	Garden                client.Client
	// Secrets of the control plane.
	Secrets secrets.Manager
}

// AddAuthorities adds what users get to know. While the authorities are being replaced, the API server is first.
func (p *Publication) AddAuthorities(g *flow.Graph, after ...flow.TaskID) {
	g.Add(flow.Task{
		Name: "Publishing certificate authorities to the garden", Fn: tasks.Retried(p.publishAuthorities),
		Dependencies: after,
	})
}

// publishAuthorities writes to the garden what users need to trust the API server, and what the garden needs to sign
// client certificates for them.
func (p *Publication) publishAuthorities(ctx context.Context) error {
	bundle, err := component.CABundle(p.Secrets, component.CACluster)
	if err != nil {
		return err
	}
	signer, found := p.Secrets.Get(component.CAClient)
	if !found {
		return fmt.Errorf("certificate authority %s is missing", component.CAClient)
	}
	configMap := &corev1.ConfigMap{
		ObjectMeta: p.Shoot.GardenMeta(gardencorev1beta1.ShootProjectConfigMapSuffixCACluster),
	}
	_, err = controllerutil.CreateOrPatch(ctx, p.Garden, configMap, func() error {
		configMap.Labels = component.Merge(configMap.Labels, p.Shoot.GardenLabels(
			gardencorev1beta1.ShootProjectConfigMapSuffixCACluster))
		configMap.Data = map[string]string{
			gardencorev1beta1.DataKeyCACert: string(bundle.Data[secrets.DataKeyCertificateBundle]),
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ConfigMap %s of the garden: %w", client.ObjectKeyFromObject(configMap), err)
	}
	internal := &gardencorev1beta1.InternalSecret{
		ObjectMeta: p.Shoot.GardenMeta(gardencorev1beta1.ShootProjectSecretSuffixCAClient),
	}
	_, err = controllerutil.CreateOrPatch(ctx, p.Garden, internal, func() error {
		internal.Labels = component.Merge(internal.Labels, p.Shoot.GardenLabels(
			gardencorev1beta1.ShootProjectSecretSuffixCAClient))
		internal.Data = map[string][]byte{
			gardencorev1beta1.DataKeyCACert: signer.Data[secrets.DataKeyCertificateCA],
			gardencorev1beta1.DataKeyCAKey:  signer.Data[secrets.DataKeyPrivateKeyCA],
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("InternalSecret %s of the garden: %w", client.ObjectKeyFromObject(internal), err)
	}
	return nil
}

// Remove deletes what was written.
func Remove(ctx context.Context, garden client.Client, shoot plan.Identity) error {
	return component.Delete(ctx, garden,
		&corev1.ConfigMap{ObjectMeta: shoot.GardenMeta(gardencorev1beta1.ShootProjectConfigMapSuffixCACluster)},
		&gardencorev1beta1.InternalSecret{
			ObjectMeta: shoot.GardenMeta(gardencorev1beta1.ShootProjectSecretSuffixCAClient),
		},
		&corev1.Secret{ObjectMeta: shoot.GardenMeta(plan.SSHKeypairName)},
		&corev1.Secret{ObjectMeta: shoot.GardenMeta(oldSSHKeypairName)},
	)
}
