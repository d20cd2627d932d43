// Package lifetime deletes shoots whose time is up: quotas of the credentials that a shoot uses may bound how long it
// lives.
package lifetime

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

// DefaultSyncPeriod is how often the quotas of a shoot are looked at again.
const DefaultSyncPeriod = time.Hour

// day is the unit in which quotas count.
const day = 24 * time.Hour

// Reconciler watches over the lifetime of shoots.
type Reconciler struct {
	Client     client.Client
	Recorder   events.EventRecorder
	SyncPeriod time.Duration
	Now        func() time.Time
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Recorder == nil {
		r.Recorder = mgr.GetEventRecorder("garden-controller-manager")
	}
	if r.SyncPeriod == 0 {
		r.SyncPeriod = DefaultSyncPeriod
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("shoot-lifetime").
		For(&gardencorev1beta1.Shoot{}, builder.WithPredicates(changed())).
		Complete(r)
}

// changed lets pass what may move the end of a shoot.
func changed() predicate.Predicate {
	return predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*gardencorev1beta1.Shoot)
			after, isShoot := e.ObjectNew.(*gardencorev1beta1.Shoot)
			return !ok || !isShoot || before.Annotations[gardencorev1beta1.ShootExpirationTimestamp] !=
				after.Annotations[gardencorev1beta1.ShootExpirationTimestamp] ||
				!ptr.Equal(before.Spec.CredentialsBindingName, after.Spec.CredentialsBindingName) ||
				!ptr.Equal(before.Spec.SecretBindingName, after.Spec.SecretBindingName)
		},
	}
}

// Reconcile writes when a shoot expires, and deletes it then.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &gardencorev1beta1.Shoot{}
	if err := r.Client.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if shoot.DeletionTimestamp != nil || !hasCredentials(shoot) {
		return reconcile.Result{}, nil
	}
	result, err := r.reconcile(ctx, shoot)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("lifetime of shoot %s: %w", request, err)
	}
	return result, nil
}

func hasCredentials(shoot *gardencorev1beta1.Shoot) bool {
	return shoot.Spec.SecretBindingName != nil || shoot.Spec.CredentialsBindingName != nil
}

func (r *Reconciler) reconcile(ctx context.Context, shoot *gardencorev1beta1.Shoot) (reconcile.Result, error) {
	quotas, err := r.quotas(ctx, shoot)
	if err != nil {
		return reconcile.Result{}, err
	}
	expiration, limited, err := Expiration(shoot, quotas)
	if err != nil || !limited {
		return reconcile.Result{RequeueAfter: r.SyncPeriod}, err
	}
	if shoot.Annotations[gardencorev1beta1.ShootExpirationTimestamp] == "" {
		patch := client.MergeFrom(shoot.DeepCopy())
		annotate(shoot, gardencorev1beta1.ShootExpirationTimestamp, expiration.Format(time.RFC3339))
		if err := r.Client.Patch(ctx, shoot, patch); err != nil {
			return reconcile.Result{}, fmt.Errorf("writing annotation %s: %w",
				gardencorev1beta1.ShootExpirationTimestamp, err)
		}
	}
	if left := expiration.Sub(r.Now()); left > 0 {
		return reconcile.Result{RequeueAfter: min(left, r.SyncPeriod)}, nil
	}
	return reconcile.Result{}, r.delete(ctx, shoot, expiration)
}

// quotas reads the quotas of the credentials that the shoot uses. What is missing limits nothing.
func (r *Reconciler) quotas(ctx context.Context, shoot *gardencorev1beta1.Shoot) ([]gardencorev1beta1.Quota, error) {
	references, err := r.references(ctx, shoot)
	if err != nil {
		return nil, fmt.Errorf("binding of the credentials: %w", err)
	}
	var quotas []gardencorev1beta1.Quota
	for _, reference := range references {
		quota := gardencorev1beta1.Quota{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: reference.Namespace, Name: reference.Name}, &quota)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("quota %s/%s: %w", reference.Namespace, reference.Name, err)
		}
		quotas = append(quotas, quota)
	}
	return quotas, nil
}

func (r *Reconciler) references(ctx context.Context, shoot *gardencorev1beta1.Shoot) ([]corev1.ObjectReference, error) {
	if name := shoot.Spec.CredentialsBindingName; name != nil {
		binding := &securityv1alpha1.CredentialsBinding{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: *name}, binding)
		return binding.Quotas, client.IgnoreNotFound(err)
	}
	binding := &gardencorev1beta1.SecretBinding{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: *shoot.Spec.SecretBindingName}, binding)
	return binding.Quotas, client.IgnoreNotFound(err)
}

// Expiration returns when a shoot has to be deleted, and whether it has to be at all: by the annotation when there is
// one, else by the shortest lifetime of the quotas. Without a lifetime in the quotas the annotation counts for nothing.
func Expiration(shoot *gardencorev1beta1.Shoot,
	quotas []gardencorev1beta1.Quota) (expiration time.Time, limited bool, err error) {
	var shortest *int32
	for _, quota := range quotas {
		if days := quota.Spec.ClusterLifetimeDays; days != nil && (shortest == nil || *days < *shortest) {
			shortest = days
		}
	}
	if shortest == nil {
		return time.Time{}, false, nil
	}
	if text := shoot.Annotations[gardencorev1beta1.ShootExpirationTimestamp]; text != "" {
		expiration, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return time.Time{}, false, fmt.Errorf("annotation %s is no time such as 2026-01-31T12:00:00Z: %w",
				gardencorev1beta1.ShootExpirationTimestamp, err)
		}
		return expiration, true, nil
	}
	return shoot.CreationTimestamp.Add(time.Duration(*shortest) * day), true, nil
}

// delete tells the users, confirms the deletion and asks for it.
func (r *Reconciler) delete(ctx context.Context, shoot *gardencorev1beta1.Shoot, expiration time.Time) error {
	r.Recorder.Eventf(shoot, nil, corev1.EventTypeNormal, "ClusterExpired", "Delete",
		"Deleted because its lifetime ended at %s", expiration.Format(time.RFC3339))
	ctrl.LoggerFrom(ctx).Info("Deleting an expired shoot", "expiration", expiration)
	if confirmed, err := strconv.ParseBool(shoot.Annotations[gardencorev1beta1.ConfirmationDeletion]); err != nil ||
		!confirmed {
		patch := client.MergeFrom(shoot.DeepCopy())
		annotate(shoot, gardencorev1beta1.ConfirmationDeletion, "true")
		if err := r.Client.Patch(ctx, shoot, patch); err != nil {
			return fmt.Errorf("confirming the deletion: %w", err)
		}
	}
	if err := r.Client.Delete(ctx, shoot, client.Preconditions{UID: &shoot.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}

func annotate(shoot *gardencorev1beta1.Shoot, key, value string) {
	if shoot.Annotations == nil {
		shoot.Annotations = map[string]string{}
	}
	shoot.Annotations[key] = value
}
