// Package credentials copies credentials and what a Shoot refers to from the garden to the control plane's namespace.
package credentials

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/workloadidentity"
)

// Kinds of the garden's objects with credentials.
const (
	kindSecret           = "Secret"
	kindInternalSecret   = "InternalSecret"
	kindWorkloadIdentity = "WorkloadIdentity"
)

const (
	// cloudProviderSecret is the name of the Secret with the credentials for the infrastructure, and its role.
	cloudProviderSecret = "cloudprovider"
	// referencePrefix begins the names of copies of what spec.resources refers to, identityPrefix those of Secrets
	// with tokens.
	referencePrefix, identityPrefix = "ref-", "workload-identity-ref-"
)

// Secret is one in the control plane's namespace: from where in the garden its content comes, and its labels.
type Secret struct {
	From corev1.ObjectReference
	To   string
	Role string
	// Referenced says that spec.resources asks for it.
	Referenced bool
}

// Copier copies for one shoot.
type Copier struct {
	Shoot plan.Identity
	// Garden and Seed are clients that read from the API servers.
	Garden, Seed client.Client
}

// CloudProvider refers to the Secret with the credentials for the infrastructure.
func CloudProvider(shoot plan.Identity) corev1.SecretReference {
	return corev1.SecretReference{Namespace: shoot.Namespace, Name: cloudProviderSecret}
}

// Deploy writes the Secret: the data of a Secret or InternalSecret, or a token of a WorkloadIdentity. Whatever it is,
// all of it has one owner, so nothing stays of what was there before.
func (d *Copier) Deploy(ctx context.Context, c Secret) error {
	switch c.From.Kind {
	case kindSecret:
		source := &corev1.Secret{}
		return d.copyData(ctx, c, source, func() map[string][]byte { return source.Data })
	case kindInternalSecret:
		source := &gardencorev1beta1.InternalSecret{}
		return d.copyData(ctx, c, source, func() map[string][]byte { return source.Data })
	case kindWorkloadIdentity:
		return d.deployToken(ctx, c)
	}
	return flow.Permanent(&plan.ConfigurationError{
		Err: fmt.Errorf("a %s holds no credentials: refer to a Secret, an InternalSecret or a WorkloadIdentity",
			c.From.Kind),
	})
}

// copyData writes the data of an object of the garden.
func (d *Copier) copyData(ctx context.Context, c Secret, source client.Object, data func() map[string][]byte) error {
	key := client.ObjectKey{Namespace: c.From.Namespace, Name: c.From.Name}
	if err := d.Garden.Get(ctx, key, source); err != nil {
		return missingCredentials(c, fmt.Errorf("reading %s %s of the garden: %w", c.From.Kind, key, err))
	}
	meta := d.Shoot.Meta(c.To)
	if c.Role != "" {
		meta.Labels = map[string]string{gardencorev1beta1.GardenRole: c.Role}
	}
	return component.Apply(ctx, d.Seed, &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeOpaque, Data: data()})
}

// deployToken writes a token that is requested for the sake of the shoot.
func (d *Copier) deployToken(ctx context.Context, c Secret) error {
	tokens := &workloadidentity.Tokens{Garden: d.Garden, Seed: d.Seed, Now: time.Now}
	err := tokens.Deploy(ctx, workloadidentity.Use{
		Identity: client.ObjectKey{Namespace: c.From.Namespace, Name: c.From.Name}, Secret: d.Shoot.Key(c.To),
		Role: c.Role, Referenced: c.Referenced,
		For: securityv1alpha1.ContextObject{
			Kind: "Shoot", APIVersion: gardencorev1beta1.SchemeGroupVersion.String(),
			Name: d.Shoot.ShootName, Namespace: &d.Shoot.ShootNamespace, UID: types.UID(d.Shoot.UID),
		},
	})
	return missingCredentials(c, err)
}

// missingCredentials tells credentials that do not exist, which the user must create, from a failing API.
func missingCredentials(c Secret, err error) error {
	if apierrors.IsNotFound(err) {
		return flow.Permanent(&plan.ConfigurationError{
			Err: fmt.Errorf("the %s %s/%s does not exist in the garden", c.From.Kind, c.From.Namespace, c.From.Name),
		})
	}
	return err
}

// DeployCloudProvider writes the credentials for the infrastructure.
func (d *Copier) DeployCloudProvider(ctx context.Context, from corev1.ObjectReference) error {
	return d.Deploy(ctx, Secret{From: from, To: cloudProviderSecret, Role: cloudProviderSecret})
}

// DeployReferences copies Secrets and ConfigMaps that the Shoot refers to, and writes tokens of WorkloadIdentities.
func (d *Copier) DeployReferences(ctx context.Context, references []gardencorev1beta1.NamedResourceReference) error {
	for _, reference := range references {
		if err := d.deployReference(ctx, corev1.ObjectReference{
			Kind: reference.ResourceRef.Kind, Namespace: d.Shoot.ShootNamespace, Name: reference.ResourceRef.Name,
		}); err != nil {
			return fmt.Errorf("spec.resources %q: %w", reference.Name, err)
		}
	}
	return d.removeUnreferenced(ctx, references)
}

func (d *Copier) deployReference(ctx context.Context, from corev1.ObjectReference) error {
	switch from.Kind {
	case kindSecret:
		return d.Deploy(ctx, Secret{From: from, To: referencePrefix + from.Name})
	case kindWorkloadIdentity:
		return d.Deploy(ctx, Secret{From: from, To: identityPrefix + from.Name, Referenced: true})
	case "ConfigMap":
		source := &corev1.ConfigMap{}
		if err := d.Garden.Get(ctx, client.ObjectKey{Namespace: from.Namespace, Name: from.Name}, source); err != nil {
			return fmt.Errorf("reading ConfigMap %s of the garden: %w", from.Name, err)
		}
		return component.Apply(ctx, d.Seed,
			&corev1.ConfigMap{
				ObjectMeta: d.Shoot.Meta(referencePrefix + from.Name), Data: source.Data, BinaryData: source.BinaryData,
			})
	}
	return flow.Permanent(&plan.ConfigurationError{
		Err: fmt.Errorf("kind %q is not supported; only Secret, ConfigMap and WorkloadIdentity are", from.Kind),
	})
}

// removeUnreferenced deletes Secrets with tokens that spec.resources does not ask for any more: they would be renewed
// for ever.
func (d *Copier) removeUnreferenced(ctx context.Context, references []gardencorev1beta1.NamedResourceReference) error {
	wanted := sets.New[string]()
	for _, reference := range references {
		if reference.ResourceRef.Kind == kindWorkloadIdentity {
			wanted.Insert(identityPrefix + reference.ResourceRef.Name)
		}
	}
	list := &corev1.SecretList{}
	err := d.Seed.List(ctx, list, client.InNamespace(d.Shoot.Namespace),
		client.MatchingLabels{securityv1alpha1.LabelWorkloadIdentityReferenced: "true"})
	if err != nil {
		return fmt.Errorf("listing Secrets with tokens of referenced workload identities: %w", err)
	}
	for i := range list.Items {
		if !wanted.Has(list.Items[i].Name) {
			if err := component.Delete(ctx, d.Seed, &list.Items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
