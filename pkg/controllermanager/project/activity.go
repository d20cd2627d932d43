package project

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

const (
	// activityPrecision is how exact the time of the last activity is: busy projects are not written more often.
	activityPrecision = 5 * time.Minute
	// recent tells objects that were just created from those that are seen for the first time after a restart.
	recent = time.Hour
)

// ActivityReconciler writes when something last changed in a project.
type ActivityReconciler struct {
	Client client.Client
	Now    func() time.Time
}

// SetupWithManager registers the controller.
func (r *ActivityReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Now == nil {
		r.Now = time.Now
	}
	controller := ctrl.NewControllerManagedBy(mgr).
		Named("project-activity").
		For(&gardencorev1beta1.Project{},
			builder.WithPredicates(predicate.NewPredicateFuncs(func(client.Object) bool { return false })))
	for _, object := range []client.Object{
		&gardencorev1beta1.Shoot{}, &gardencorev1beta1.BackupEntry{}, &gardencorev1beta1.Quota{},
		&gardencorev1beta1.SecretBinding{}, &securityv1alpha1.CredentialsBinding{},
	} {
		controller = controller.Watches(object, handler.EnqueueRequestsFromMapFunc(r.projectOf),
			builder.WithPredicates(activity(r.Now)))
	}
	return controller.Complete(r)
}

// activity lets pass what somebody did on purpose: objects that were created or deleted, and changes of specifications.
func activity(now func() time.Time) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return now().Sub(e.Object.GetCreationTimestamp().Time) < recent },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
		},
	}
}

func (r *ActivityReconciler) projectOf(ctx context.Context, object client.Object) []reconcile.Request {
	projects := &gardencorev1beta1.ProjectList{}
	if err := r.Client.List(ctx, projects, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list projects")
		return nil
	}
	for i := range projects.Items {
		if namespace := projects.Items[i].Spec.Namespace; namespace != nil && *namespace == object.GetNamespace() {
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(&projects.Items[i])}}
		}
	}
	return nil
}

// Reconcile writes the time.
func (r *ActivityReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	project := &gardencorev1beta1.Project{}
	if err := r.Client.Get(ctx, request.NamespacedName, project); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := metav1.NewTime(r.Now())
	if last := project.Status.LastActivityTimestamp; last != nil && now.Sub(last.Time) < activityPrecision {
		return reconcile.Result{}, nil
	}
	patch := client.MergeFrom(project.DeepCopy())
	project.Status.LastActivityTimestamp = &now
	if err := r.Client.Status().Patch(ctx, project, patch); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("last activity of project %s: %w", request.Name, err)
	}
	return reconcile.Result{}, nil
}
