package controllers

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/members"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// renew replaces the token of a joined member when half of its life is over. The condition tells when that fails.
func (c *clusters) renew(ctx context.Context, member *members.Member, cluster *clusterv1alpha1.Cluster) error {
	secret, err := c.secretOf(ctx, cluster)
	if err != nil {
		return err
	}
	account, lifetime, due := registration.Renewal(secret, c.now())
	if !due {
		return nil
	}
	ctx, cancel := members.RequestContext(ctx)
	defer cancel()
	token, err := registration.RequestToken(ctx, member.Client(), account, lifetime)
	if err != nil {
		return err
	}
	before := secret.DeepCopy()
	registration.SetToken(secret, token, account, lifetime, c.now())
	if err := c.client.Patch(ctx, secret,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("storing the renewed token of member %s: %w", cluster.Name, err)
	}
	logr.FromContextOrDiscard(ctx).Info("Renewed the credentials of a member", "until",
		token.ExpirationTimestamp.UTC().Format(time.RFC3339))
	return nil
}

// setRenewed tells about credentials only what is wrong with them.
func setRenewed(status *clusterv1alpha1.ClusterStatus, err error) {
	if err == nil {
		meta.RemoveStatusCondition(&status.Conditions, clusterv1alpha1.ConditionCredentialsRenewed)
		return
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ConditionCredentialsRenewed, Status: metav1.ConditionFalse, Reason: "RenewalFailed",
		Message: shorten(err.Error() + "; `trellisctl join` under the same name renews them too"),
	})
}

// releaseMember takes the fleet's access out of a joined member that is left, and the credentials out of the fleet. A
// member that does not answer keeps the access until its owner removes it.
func (c *clusters) releaseMember(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	secret, err := c.secretOf(ctx, cluster)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if shared, err := c.isShared(ctx, cluster); err != nil || shared {
		return err
	}
	if err := c.dismissImpersonator(ctx, cluster); err != nil {
		return err
	}
	account, joined := registration.AccountOf(secret)
	if !joined {
		return nil
	}
	if member, connected := c.members.Get(cluster.Name); connected && !knownDown(cluster) {
		ctx, cancel := members.RequestContext(ctx)
		defer cancel()
		if err := registration.RevokeAccess(ctx, member.Client(), account.Name); err != nil {
			return err
		}
	}
	return client.IgnoreNotFound(c.client.Delete(ctx, secret))
}

// isShared tells whether another member has the same credentials: a second Cluster for the same cluster, for example.
func (c *clusters) isShared(ctx context.Context, cluster *clusterv1alpha1.Cluster) (bool, error) {
	var list clusterv1alpha1.ClusterList
	if err := c.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return false, err
	}
	for i := range list.Items {
		if ref := list.Items[i].Spec.SecretRef; cluster.Spec.SecretRef != nil && list.Items[i].Name != cluster.Name &&
			ref != nil && *ref == *cluster.Spec.SecretRef {
			return true, nil
		}
	}
	return false, nil
}

func (c *clusters) secretOf(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if cluster.Spec.SecretRef == nil {
		return secret, nil
	}
	key := client.ObjectKey{Namespace: cluster.Spec.SecretRef.Namespace, Name: cluster.Spec.SecretRef.Name}
	if err := c.client.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("spec.secretRef: %w", err)
	}
	return secret, nil
}

// identify finds out which cluster a member is, and refuses one that the fleet has under an older name: its objects
// would be applied twice, and removed by one while the other wants them.
func (c *clusters) identify(ctx context.Context, member *members.Member, cluster *clusterv1alpha1.Cluster) error {
	if cluster.Spec.ID == "" {
		id, err := member.ID(ctx)
		if err != nil {
			return err
		}
		before := cluster.DeepCopy()
		cluster.Spec.ID = id
		if err := c.client.Patch(ctx, cluster,
			client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("writing spec.id of cluster %s: %w", cluster.Name, err)
		}
	}
	var list clusterv1alpha1.ClusterList
	if err := c.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	return refuseDuplicate(cluster, list.Items)
}

const reasonDuplicate = "DuplicateMember"

func isRefusedAsDuplicate(cluster *clusterv1alpha1.Cluster) bool {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
	return ready != nil && ready.Reason == reasonDuplicate
}

// duplicateError names the other member.
type duplicateError struct{ other string }

func (e duplicateError) Error() string {
	return fmt.Sprintf("this is the same cluster as member %s (spec.id); remove one of the two", e.other)
}

func refuseDuplicate(cluster *clusterv1alpha1.Cluster, all []clusterv1alpha1.Cluster) error {
	for i := range all {
		if other := &all[i]; other.Name != cluster.Name && other.Spec.ID == cluster.Spec.ID && isOlder(other, cluster) {
			return duplicateError{other.Name}
		}
	}
	return nil
}

func isOlder(a, b *clusterv1alpha1.Cluster) bool {
	if a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.Name < b.Name
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}
