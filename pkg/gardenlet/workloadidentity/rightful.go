package workloadidentity

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

// kind of identities in references.
const kind = "WorkloadIdentity"

// checkRightful refuses what a Secret asks for unless its namespace is that of the Shoot for whose sake the token would
// be, and that Shoot uses the identity. Extensions write Secrets in the namespaces of their shoots, with whatever
// annotations they like, and the garden issues to a gardenlet tokens of all identities that shoots of its seed use.
func (t *Tokens) checkRightful(ctx context.Context, use Use) error {
	key := client.ObjectKey{Namespace: ptr.Deref(use.For.Namespace, ""), Name: use.For.Name}
	shoot := &gardencorev1beta1.Shoot{}
	if use.For.Kind != "Shoot" {
		return fmt.Errorf("the token is for the sake of a %s; only Shoots have tokens", use.For.Kind)
	}
	if err := t.Garden.Get(ctx, key, shoot); err != nil {
		return fmt.Errorf("reading Shoot %s, for whose sake the token is: %w", key, err)
	}
	if shoot.Status.TechnicalID != use.Secret.Namespace {
		return fmt.Errorf("the token is for the sake of Shoot %s, whose namespace is not %s", key, use.Secret.Namespace)
	}
	used, err := t.identitiesOf(ctx, shoot)
	if err != nil {
		return err
	}
	if !slices.Contains(used, use.Identity) {
		return fmt.Errorf("Shoot %s does not use WorkloadIdentity %s", key, use.Identity)
	}
	return nil
}

// identitiesOf are those that a Shoot uses: for its infrastructure, for its domains, which its seed may give, and those
// that it refers to.
func (t *Tokens) identitiesOf(ctx context.Context, shoot *gardencorev1beta1.Shoot) ([]client.ObjectKey, error) {
	var references []corev1.ObjectReference
	for _, r := range shoot.Spec.Resources {
		references = append(references,
			corev1.ObjectReference{Kind: r.ResourceRef.Kind, Namespace: shoot.Namespace, Name: r.ResourceRef.Name})
	}
	if dns := shoot.Spec.DNS; dns != nil {
		for _, provider := range dns.Providers {
			if r := provider.CredentialsRef; r != nil {
				references = append(references,
					corev1.ObjectReference{Kind: r.Kind, Namespace: shoot.Namespace, Name: r.Name})
			}
		}
	}
	if name := shoot.Spec.CredentialsBindingName; name != nil {
		binding := &securityv1alpha1.CredentialsBinding{}
		if err := t.Garden.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: *name}, binding); err != nil {
			return nil, fmt.Errorf("reading CredentialsBinding %s/%s: %w", shoot.Namespace, *name, err)
		}
		references = append(references, binding.CredentialsRef)
	}
	if name := shoot.Spec.SeedName; name != nil {
		seed := &gardencorev1beta1.Seed{}
		if err := t.Garden.Get(ctx, client.ObjectKey{Name: *name}, seed); err != nil {
			return nil, fmt.Errorf("reading Seed %s: %w", *name, err)
		}
		references = append(references, domainsOf(seed)...)
	}
	var identities []client.ObjectKey
	for _, r := range references {
		if r.Kind == kind {
			identities = append(identities, client.ObjectKey{Namespace: r.Namespace, Name: r.Name})
		}
	}
	return identities, nil
}

// domainsOf are the credentials for the domains that a seed gives to shoots.
func domainsOf(seed *gardencorev1beta1.Seed) []corev1.ObjectReference {
	var references []corev1.ObjectReference
	if internal := seed.Spec.DNS.Internal; internal != nil {
		references = append(references, internal.CredentialsRef)
	}
	for _, domain := range seed.Spec.DNS.Defaults {
		references = append(references, domain.CredentialsRef)
	}
	return references
}
