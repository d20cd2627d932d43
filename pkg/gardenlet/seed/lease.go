package seed

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Lease renews the seed's Lease in the garden as long as the seed's API server answers. It implements manager.Runnable.
// The controller of Leases that Kubernetes has for its components does not tell when it last renewed one, which the
// seed's condition GardenletReady goes by.
type Lease struct {
	// Garden is a client of the garden.
	Garden client.Client
	// Healthy says whether the seed's API server answers.
	Healthy func(ctx context.Context) error
	// Seed is the Seed object that owns the Lease.
	Seed *gardencorev1beta1.Seed
	// Period between renewals.
	Period time.Duration
	// Log takes failures.
	Log logr.Logger

	renewed atomic.Int64
}

// Start renews the Lease until ctx ends.
func (l *Lease) Start(ctx context.Context) error {
	lease := l.new()
	wait.NonSlidingUntilWithContext(ctx, func(ctx context.Context) {
		if err := l.renew(ctx, lease); err != nil && ctx.Err() == nil {
			l.Log.Error(err, "Renewing the Lease of the seed failed")
			lease = l.new()
		}
	}, l.Period)
	return nil
}

// LastRenewal is when the Lease was last renewed.
func (l *Lease) LastRenewal() time.Time { return time.Unix(0, l.renewed.Load()) }

// new returns the Lease as it is to be.
func (l *Lease) new() *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: gardencorev1beta1.GardenerSeedLeaseNamespace, Name: l.Seed.Name,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(l.Seed, gardencorev1beta1.SchemeGroupVersion.WithKind("Seed")),
			},
		},
	}
}

// renew writes the time. lease holds what was written last, so that one request is enough.
func (l *Lease) renew(ctx context.Context, lease *coordinationv1.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := l.Healthy(ctx); err != nil {
		return err
	}
	if lease.ResourceVersion == "" {
		err := l.Garden.Get(ctx, client.ObjectKeyFromObject(lease), lease)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	now := metav1.NowMicro()
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: new(l.Seed.Name), LeaseDurationSeconds: new(int32(40)), RenewTime: &now,
	}
	err := l.write(ctx, lease)
	if err == nil {
		l.renewed.Store(now.UnixNano())
	}
	return err
}

// write creates or updates the Lease.
func (l *Lease) write(ctx context.Context, lease *coordinationv1.Lease) error {
	if lease.ResourceVersion != "" {
		return l.Garden.Update(ctx, lease)
	}
	err := l.Garden.Create(ctx, lease)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
