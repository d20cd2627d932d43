package project

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

// skipStaleCheck on a project's namespace keeps the project, however unused it is.
const skipStaleCheck = "project.gardener.cloud/skip-stale-check"

const day = 24 * time.Hour

// StaleOptions are the periods after which unused projects are deleted.
type StaleOptions struct {
	// MinimumLifetime is how old a project, and its last activity, have to be before it can count as unused.
	MinimumLifetime time.Duration
	// GracePeriod is how long a project is unused before its deletion is announced.
	GracePeriod time.Duration
	// ExpirationTime is how long a project is unused before it is deleted.
	ExpirationTime time.Duration
	// SyncPeriod is how often projects are looked at.
	SyncPeriod time.Duration
}

// DefaultStaleOptions returns the periods that are taken when nothing else is asked for.
func DefaultStaleOptions() StaleOptions {
	return StaleOptions{
		MinimumLifetime: 30 * day, GracePeriod: 14 * day, ExpirationTime: 90 * day, SyncPeriod: 12 * time.Hour,
	}
}

// StaleReconciler finds projects that nobody uses, announces their deletion and deletes them.
type StaleReconciler struct {
	Client  client.Client
	Options StaleOptions
	Now     func() time.Time
}

// SetupWithManager registers the controller.
func (r *StaleReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Options == (StaleOptions{}) {
		r.Options = DefaultStaleOptions()
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("project-stale").
		For(&gardencorev1beta1.Project{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// Reconcile looks at one project, and again after a while.
func (r *StaleReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	project := &gardencorev1beta1.Project{}
	if err := r.Client.Get(ctx, request.NamespacedName, project); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if project.DeletionTimestamp != nil || project.Spec.Namespace == nil {
		return reconcile.Result{}, nil
	}
	if err := r.reconcile(ctx, project); err != nil {
		return reconcile.Result{}, fmt.Errorf("stale check of project %s: %w", project.Name, err)
	}
	return reconcile.Result{RequeueAfter: r.Options.SyncPeriod}, nil
}

func (r *StaleReconciler) reconcile(ctx context.Context, project *gardencorev1beta1.Project) error {
	inUse, err := r.inUse(ctx, project)
	if err != nil {
		return err
	}
	before := project.DeepCopy()
	expired := age(project, inUse, r.Options, r.Now())
	if !ptr.Equal(before.Status.StaleSinceTimestamp, project.Status.StaleSinceTimestamp) ||
		!ptr.Equal(before.Status.StaleAutoDeleteTimestamp, project.Status.StaleAutoDeleteTimestamp) {
		if err := r.Client.Status().Patch(ctx, project, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("writing status: %w", err)
		}
	}
	if !expired {
		return nil
	}
	return r.delete(ctx, project)
}

// age brings the timestamps of a project up to date and tells whether it has to be deleted.
func age(project *gardencorev1beta1.Project, inUse bool, options StaleOptions, now time.Time) (expired bool) {
	status, stamp := &project.Status, metav1.NewTime(now)
	young := now.Sub(project.CreationTimestamp.Time) < options.MinimumLifetime
	active := status.LastActivityTimestamp != nil &&
		now.Sub(status.LastActivityTimestamp.Time) < options.MinimumLifetime
	if inUse || young || active {
		status.StaleSinceTimestamp, status.StaleAutoDeleteTimestamp = nil, nil
		return false
	}
	if status.StaleSinceTimestamp == nil {
		status.StaleSinceTimestamp = &stamp
	}
	if status.StaleAutoDeleteTimestamp == nil && now.Sub(status.StaleSinceTimestamp.Time) >= options.GracePeriod {
		status.StaleAutoDeleteTimestamp = &metav1.Time{Time: status.StaleSinceTimestamp.Add(options.ExpirationTime)}
	}
	return status.StaleAutoDeleteTimestamp != nil && !now.Before(status.StaleAutoDeleteTimestamp.Time)
}

// delete confirms the deletion and asks for it.
func (r *StaleReconciler) delete(ctx context.Context, project *gardencorev1beta1.Project) error {
	ctrl.LoggerFrom(ctx).Info("Deleting a project that nobody uses", "since", project.Status.StaleSinceTimestamp)
	patch := client.MergeFrom(project.DeepCopy())
	if project.Annotations == nil {
		project.Annotations = map[string]string{}
	}
	project.Annotations[gardencorev1beta1.ConfirmationDeletion] = "true"
	if err := r.Client.Patch(ctx, project, patch); err != nil {
		return fmt.Errorf("confirming the deletion: %w", err)
	}
	return client.IgnoreNotFound(r.Client.Delete(ctx, project, client.Preconditions{UID: &project.UID}))
}

// inUse tells whether a project has shoots or backups, or holds credentials or quotas that shoots of other projects
// use. The operators' own project always is.
func (r *StaleReconciler) inUse(ctx context.Context, project *gardencorev1beta1.Project) (bool, error) {
	name := *project.Spec.Namespace
	namespace := &corev1.Namespace{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("namespace %s: %w", name, err)
	}
	if name == gardencorev1beta1.GardenNamespace || namespace.Annotations[skipStaleCheck] == "true" {
		return true, nil
	}
	for _, list := range []client.ObjectList{&gardencorev1beta1.ShootList{}, &gardencorev1beta1.BackupEntryList{}} {
		if err := r.Client.List(ctx, list, client.InNamespace(name), client.Limit(1),
			client.UnsafeDisableDeepCopy); err != nil {
			return false, fmt.Errorf("listing %T: %w", list, err)
		}
		if count(list) > 0 {
			return true, nil
		}
	}
	return r.sharesCredentials(ctx, name)
}

func count(list client.ObjectList) int {
	switch list := list.(type) {
	case *gardencorev1beta1.ShootList:
		return len(list.Items)
	case *gardencorev1beta1.BackupEntryList:
		return len(list.Items)
	}
	return 0
}

// sharesCredentials tells whether shoots anywhere use a binding that refers to something in the namespace.
func (r *StaleReconciler) sharesCredentials(ctx context.Context, namespace string) (bool, error) {
	secretBindings, credentialsBindings, shoots := &gardencorev1beta1.SecretBindingList{},
		&securityv1alpha1.CredentialsBindingList{}, &gardencorev1beta1.ShootList{}
	for _, list := range []client.ObjectList{secretBindings, credentialsBindings, shoots} {
		if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return false, fmt.Errorf("listing %T: %w", list, err)
		}
	}
	sharing := map[client.ObjectKey]bool{}
	for i := range secretBindings.Items {
		binding := &secretBindings.Items[i]
		sharing[client.ObjectKey{Namespace: binding.Namespace, Name: "secret/" + binding.Name}] = refersInto(namespace,
			binding.SecretRef.Namespace, binding.Quotas)
	}
	for i := range credentialsBindings.Items {
		binding := &credentialsBindings.Items[i]
		sharing[client.ObjectKey{
			Namespace: binding.Namespace, Name: "credentials/" + binding.Name,
		}] = refersInto(namespace, binding.CredentialsRef.Namespace, binding.Quotas)
	}
	for i := range shoots.Items {
		shoot := &shoots.Items[i]
		for prefix, name := range map[string]*string{
			"secret/": shoot.Spec.SecretBindingName, "credentials/": shoot.Spec.CredentialsBindingName,
		} {
			if name != nil && sharing[client.ObjectKey{Namespace: shoot.Namespace, Name: prefix + *name}] {
				return true, nil
			}
		}
	}
	return false, nil
}

func refersInto(namespace, credentials string, quotas []corev1.ObjectReference) bool {
	for _, quota := range quotas {
		if quota.Namespace == namespace {
			return true
		}
	}
	return credentials == namespace
}
