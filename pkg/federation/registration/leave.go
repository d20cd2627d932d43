package registration

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
)

// Unjoin lets a member leave: the fleet takes away what it applied there, then its access. It waits for that.
func Unjoin(ctx context.Context, fleet client.Client, name string, timeout time.Duration,
	tell func(format string, arguments ...any)) error {
	cluster := &clusterv1alpha1.Cluster{}
	if err := fleet.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return takeBack(ctx, fleet, name, tell)
		}
		return err
	}
	if shoot := cluster.Labels[clusterv1alpha1.ShootLabel]; shoot != "" {
		return fmt.Errorf("member %q is a shoot of the fleet's project, which would join again; keep it out with "+
			"`kubectl label shoot %s %s=false` in the garden", name, shoot, fleetv1alpha1.JoinLabel)
	}
	tell("Asking the fleet to take what it applied out of %s", name)
	if err := fleet.Delete(ctx, cluster); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("member %s: %w", name, err)
	}
	if timeout == 0 {
		return nil
	}
	if err := waitGone(ctx, fleet, cluster, timeout, tell); err != nil {
		return err
	}
	tell("%s has left the fleet", name)
	_, err := removeSecret(ctx, fleet, name)
	return err
}

// takeBack removes what a Join left that ended before there was a member.
func takeBack(ctx context.Context, fleet client.Client, name string, tell func(format string, arguments ...any)) error {
	removed, err := removeSecret(ctx, fleet, name)
	if err != nil {
		return err
	}
	if !removed {
		return fmt.Errorf("the fleet has no member %q; `trellisctl members` shows those that it has", name)
	}
	fleetID, err := Identity(ctx, fleet)
	if err != nil {
		return fmt.Errorf("the fleet does not answer as it should: %w", err)
	}
	tell("%s was not a member yet; removed the credentials that joining it had left. Delete ClusterRole %s in the "+
		"cluster, if it is no member by another name", name, AccessName(fleetID))
	return nil
}

func waitGone(ctx context.Context, fleet client.Client, cluster *clusterv1alpha1.Cluster, timeout time.Duration,
	tell func(format string, arguments ...any)) error {
	told := -1
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, timeout, true,
		func(ctx context.Context) (bool, error) {
			err := fleet.Get(ctx, client.ObjectKeyFromObject(cluster), &clusterv1alpha1.Cluster{})
			if apierrors.IsNotFound(err) {
				return true, nil
			}
			if err != nil {
				return false, transient(ctx, err)
			}
			var works workv1alpha1.WorkList
			if err := fleet.List(ctx, &works,
				client.InNamespace(clusterv1alpha1.ExecutionNamespace(cluster.Name))); err != nil {
				return false, transient(ctx, err)
			}
			if left := len(works.Items); left != told {
				told = left
				tell("%d Works left", left)
			}
			return false, nil
		})
	if wait.Interrupted(err) {
		return fmt.Errorf("%s is still leaving after %s, with %d Works left; it goes on in the background: `kubectl "+
			"-n %s get works` shows what is held up",
			cluster.Name, timeout, told, clusterv1alpha1.ExecutionNamespace(cluster.Name))
	}
	return err
}

// removeSecret is for fleets whose controllers were not running when the member left. It tells whether there was
// something to remove.
func removeSecret(ctx context.Context, fleet client.Client, name string) (bool, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.CredentialsNamespace, Name: name}}
	if err := fleet.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if secret.Labels[JoinedLabel] != "true" {
		return false, nil
	}
	return true, client.IgnoreNotFound(fleet.Delete(ctx, secret))
}
