package clusterautoscaler

import (
	"context"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/trellis-garden/trellis/pkg/managers"
)

// lockOf is the Lease that the working process of a shoot holds, beside the machines in the seed.
func lockOf(seed *rest.Config, namespace string) (resourcelock.Interface, error) {
	clientset, err := kubernetes.NewForConfig(seed)
	if err != nil {
		return nil, fmt.Errorf("client of the seed: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name of this process: %w", err)
	}
	return newLock(clientset.CoordinationV1(), namespace, host+"_"+string(uuid.NewUUID())), nil
}

func newLock(leases typedcoordinationv1.LeasesGetter, namespace, identity string) resourcelock.Interface {
	return &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: component}, Client: leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
}

// lead waits until the lease is free, holds it and works. It returns when the work or ctx ends, or with an error when
// the lease is lost: whoever takes it over must be the only one that works, so the process has to end then. The lease
// is not given away at the end, as nodes that are being emptied may still be written.
func lead(ctx context.Context, lock resourcelock.Interface, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: managers.LeaseDuration, RenewDeadline: managers.RenewDeadline,
		RetryPeriod: managers.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				ended <- work(ctx)
				cancel()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("election of a leader: %w", err)
	}
	elector.Run(ctx)
	if ctx.Err() == nil {
		return fmt.Errorf("renewing the lease %s: no success for %s, so another process may take over", lock.Describe(),
			managers.RenewDeadline)
	}
	select {
	case err := <-ended:
		return err
	default:
		return nil
	}
}
