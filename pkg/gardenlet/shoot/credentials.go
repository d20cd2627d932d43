package shoot

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
	// referencePrefix begins the names of copies of what spec.resources refers to, identityPrefix those of Secrets with tokens.
	referencePrefix, identityPrefix = "ref-", "workload-identity-ref-"
)

// credentials is a Secret in the control plane's namespace: from where in the garden its content comes, and its labels.
type credentials struct {
	from corev1.ObjectReference
	to   string
	role string
	// referenced says that spec.resources asks for it.
	referenced bool
}

// deploy writes the Secret: the data of a Secret or InternalSecret, or a token of a WorkloadIdentity. Whatever it is, all of it has
// one owner, so nothing stays of what was there before.
func (o *Operation) deploy(ctx context.Context, c credentials) error {
	switch c.from.Kind {
	case kindSecret:
		source := &corev1.Secret{}
		return o.copyData(ctx, c, source, func() map[string][]byte { return source.Data })
	case kindInternalSecret:
		source := &gardencorev1beta1.InternalSecret{}
		return o.copyData(ctx, c, source, func() map[string][]byte { return source.Data })
	case kindWorkloadIdentity:
		return o.deployToken(ctx, c)
	}
	return flow.Permanent(&configurationError{fmt.Errorf("a %s holds no credentials: refer to a Secret, an InternalSecret or a WorkloadIdentity", c.from.Kind)})
}

// copyData writes the data of an object of the garden.
func (o *Operation) copyData(ctx context.Context, c credentials, source client.Object, data func() map[string][]byte) error {
	key := client.ObjectKey{Namespace: c.from.Namespace, Name: c.from.Name}
	if err := o.Garden.Get(ctx, key, source); err != nil {
		return missingCredentials(c, fmt.Errorf("reading %s %s of the garden: %w", c.from.Kind, key, err))
	}
	meta := o.meta(c.to)
	if c.role != "" {
		meta.Labels = map[string]string{gardencorev1beta1.GardenRole: c.role}
	}
	return o.apply(ctx, &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeOpaque, Data: data()})
}

// deployToken writes a token that is requested for the sake of the shoot.
func (o *Operation) deployToken(ctx context.Context, c credentials) error {
	tokens := &workloadidentity.Tokens{Garden: o.Garden, Seed: o.Seed, Now: time.Now}
	err := tokens.Deploy(ctx, workloadidentity.Use{
		Identity: client.ObjectKey{Namespace: c.from.Namespace, Name: c.from.Name}, Secret: o.key(c.to), Role: c.role, Referenced: c.referenced,
		For: securityv1alpha1.ContextObject{
			Kind: "Shoot", APIVersion: gardencorev1beta1.SchemeGroupVersion.String(),
			Name: o.Plan.ShootName, Namespace: &o.Plan.ShootNamespace, UID: types.UID(o.Plan.UID),
		},
	})
	return missingCredentials(c, err)
}

// missingCredentials tells credentials that do not exist, which the user must create, from a failing API.
func missingCredentials(c credentials, err error) error {
	if apierrors.IsNotFound(err) {
		return flow.Permanent(&configurationError{fmt.Errorf("the %s %s/%s does not exist in the garden", c.from.Kind, c.from.Namespace, c.from.Name)})
	}
	return err
}

// deployCredentials writes the credentials for the infrastructure.
func (o *Operation) deployCredentials(ctx context.Context) error {
	return o.deploy(ctx, credentials{from: *o.Plan.Credentials, to: cloudProviderSecret, role: cloudProviderSecret})
}

// deployReferences copies Secrets and ConfigMaps that the Shoot refers to, and writes tokens of WorkloadIdentities.
func (o *Operation) deployReferences(ctx context.Context) error {
	for _, reference := range o.Plan.References {
		if err := o.deployReference(ctx, corev1.ObjectReference{
			Kind: reference.ResourceRef.Kind, Namespace: o.Plan.ShootNamespace, Name: reference.ResourceRef.Name,
		}); err != nil {
			return fmt.Errorf("spec.resources %q: %w", reference.Name, err)
		}
	}
	return o.removeUnreferenced(ctx)
}

func (o *Operation) deployReference(ctx context.Context, from corev1.ObjectReference) error {
	switch from.Kind {
	case kindSecret:
		return o.deploy(ctx, credentials{from: from, to: referencePrefix + from.Name})
	case kindWorkloadIdentity:
		return o.deploy(ctx, credentials{from: from, to: identityPrefix + from.Name, referenced: true})
	case "ConfigMap":
		source := &corev1.ConfigMap{}
		if err := o.Garden.Get(ctx, client.ObjectKey{Namespace: from.Namespace, Name: from.Name}, source); err != nil {
			return fmt.Errorf("reading ConfigMap %s of the garden: %w", from.Name, err)
		}
		return o.apply(ctx, &corev1.ConfigMap{ObjectMeta: o.meta(referencePrefix + from.Name), Data: source.Data, BinaryData: source.BinaryData})
	}
	return flow.Permanent(&configurationError{fmt.Errorf("kind %q is not supported; only Secret, ConfigMap and WorkloadIdentity are", from.Kind)})
}

// removeUnreferenced deletes Secrets with tokens that spec.resources does not ask for any more: they would be renewed for ever.
func (o *Operation) removeUnreferenced(ctx context.Context) error {
	wanted := sets.New[string]()
	for _, reference := range o.Plan.References {
		if reference.ResourceRef.Kind == kindWorkloadIdentity {
			wanted.Insert(identityPrefix + reference.ResourceRef.Name)
		}
	}
	list := &corev1.SecretList{}
	err := o.Seed.List(ctx, list, client.InNamespace(o.Plan.Namespace), client.MatchingLabels{securityv1alpha1.LabelWorkloadIdentityReferenced: "true"})
	if err != nil {
		return fmt.Errorf("listing Secrets with tokens of referenced workload identities: %w", err)
	}
	for i := range list.Items {
		if !wanted.Has(list.Items[i].Name) {
			if err := component.Delete(ctx, o.Seed, &list.Items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
