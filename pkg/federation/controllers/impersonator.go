package controllers

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/members"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

func impersonatorKey(cluster *clusterv1alpha1.Cluster) types.NamespacedName {
	return types.NamespacedName{
		Namespace: clusterv1alpha1.CredentialsNamespace, Name: registration.ImpersonatorName(cluster.Name),
	}
}

// employImpersonator has users of the fleet act in a member, if the fleet itself arranges its access there: for shoots,
// and for clusters that were joined. Others have the impersonator that people name.
func (c *clusters) employImpersonator(ctx context.Context, member *members.Member,
	cluster *clusterv1alpha1.Cluster) error {
	key, ref := impersonatorKey(cluster), cluster.Spec.ImpersonatorSecretRef
	if ref != nil && (ref.Namespace != key.Namespace || ref.Name != key.Name) {
		return nil
	}
	if arranged, err := c.arrangesAccess(ctx, cluster); err != nil || !arranged {
		return err
	}
	fleetID, err := registration.Identity(ctx, c.client)
	if err != nil {
		return err
	}
	secret, err := registration.Impersonator(ctx, c.client, key)
	if err != nil {
		return err
	}
	name := registration.ImpersonatorName(registration.AccessName(fleetID))
	if secret, err = c.renewImpersonator(ctx, member, cluster, secret, name); err != nil {
		return err
	}
	if err := c.followOwner(ctx, member, secret, name, fleetID); err != nil {
		return err
	}
	if ref != nil {
		return nil
	}
	before := cluster.DeepCopy()
	cluster.Spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: key.Namespace, Name: key.Name}
	if err := c.client.Patch(ctx, cluster,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing spec.impersonatorSecretRef of cluster %s: %w", cluster.Name, err)
	}
	return nil
}

func (c *clusters) arrangesAccess(ctx context.Context, cluster *clusterv1alpha1.Cluster) (bool, error) {
	if cluster.Labels[clusterv1alpha1.ShootLabel] != "" {
		return true, nil
	}
	secret, err := c.secretOf(ctx, cluster)
	if err != nil {
		return false, err
	}
	_, joined := registration.AccountOf(secret)
	return joined, nil
}

// renewImpersonator asks for the first token, or for another one when half of its life is over, or the member does not
// know it any more: its key for service accounts was rotated. A nil secret does not exist yet.
func (c *clusters) renewImpersonator(ctx context.Context, member *members.Member, cluster *clusterv1alpha1.Cluster,
	secret *corev1.Secret, name string) (*corev1.Secret, error) {
	const lifetime = registration.DefaultTokenLifetime
	if secret != nil {
		if _, _, due := registration.Renewal(secret, c.now()); !due {
			if good, err := isKnown(ctx, member, secret); err != nil || good {
				return secret, err
			}
		}
	}
	bounded, cancel := members.RequestContext(ctx)
	defer cancel()
	kubernetes, err := member.Version()
	if err != nil {
		return nil, err
	}
	account, err := registration.GrantImpersonation(bounded, member.Client(), name, kubernetes)
	if err != nil {
		return nil, err
	}
	token, err := registration.RequestToken(bounded, member.Client(), account, lifetime)
	if err != nil {
		return nil, err
	}
	if secret == nil {
		secret = registration.NewImpersonator(impersonatorKey(cluster))
		registration.SetToken(secret, token, account, lifetime, c.now())
		return secret, c.client.Create(ctx, secret)
	}
	before := secret.DeepCopy()
	registration.SetToken(secret, token, account, lifetime, c.now())
	return secret, c.client.Patch(ctx, secret,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// followOwner writes down, for who serves the member's API, what its owner says about the names of the fleet's users.
func (c *clusters) followOwner(ctx context.Context, member *members.Member, secret *corev1.Secret,
	name, fleetID string) error {
	bounded, cancel := members.RequestContext(ctx)
	defer cancel()
	names, err := registration.FollowOwner(bounded, member.Client(), name, fleetID)
	if err != nil || secret.Annotations[registration.NamesAnnotation] == names {
		return err
	}
	before := secret.DeepCopy()
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, registration.NamesAnnotation, names)
	return c.client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// isKnown tells whether a member takes the token of a Secret.
func isKnown(ctx context.Context, member *members.Member, secret *corev1.Secret) (bool, error) {
	ctx, cancel := members.RequestContext(ctx)
	defer cancel()
	review := &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: string(secret.Data[clusterv1alpha1.SecretToken])},
	}
	if err := member.Client().Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking the member whether it knows the impersonator's token: %w", err)
	}
	return review.Status.Authenticated, nil
}

// dismissImpersonator takes it out of a member that leaves. One that does not answer keeps it until its owner removes
// it.
func (c *clusters) dismissImpersonator(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	secret := &corev1.Secret{}
	if err := c.client.Get(ctx, impersonatorKey(cluster), secret); err != nil {
		return client.IgnoreNotFound(err)
	}
	account, ours := registration.AccountOf(secret)
	if !ours {
		return nil
	}
	if member, connected := c.members.Get(cluster.Name); connected && !knownDown(cluster) {
		bounded, cancel := members.RequestContext(ctx)
		defer cancel()
		if err := registration.RevokeAccess(bounded, member.Client(), account.Name); err != nil {
			return err
		}
	}
	return client.IgnoreNotFound(c.client.Delete(ctx, secret))
}
