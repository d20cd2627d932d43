// Package project gives every project its namespace and its members their rights, and takes both away again.
package project

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/finalizer"
)

// deletionRetry is how soon to look again at a project that cannot be deleted yet.
const deletionRetry = 2 * time.Second

// keepNamespace on a project's namespace keeps it when the project is deleted.
const keepNamespace = "namespace.gardener.cloud/keep-after-project-deletion"

// ConditionReconciled says whether a project has the namespace and the roles that it should have, or why not.
const ConditionReconciled gardencorev1beta1.ConditionType = "ProjectReconciled"

// Reconciler reconciles projects.
type Reconciler struct {
	Client client.Client
	// Uncached counts objects of kinds that are not worth a cache.
	Uncached client.Reader
	// Quotas are the ResourceQuotas of projects' namespaces.
	Quotas []QuotaConfiguration
}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Client == nil {
		r.Client = mgr.GetClient()
	}
	if r.Uncached == nil {
		r.Uncached = mgr.GetAPIReader()
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("project").
		For(&gardencorev1beta1.Project{}).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(projectOfNamespace)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 5}).
		Complete(r)
}

func projectOfNamespace(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[gardencorev1beta1.ProjectName]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: name}}}
}

// Reconcile brings one project to what its spec says.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	project := &gardencorev1beta1.Project{}
	if err := r.Client.Get(ctx, request.NamespacedName, project); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if project.DeletionTimestamp != nil {
		return r.delete(ctx, project)
	}
	if err := finalizer.Ensure(ctx, r.Client, project, gardencorev1beta1.GardenerName); err != nil {
		return reconcile.Result{}, fmt.Errorf("project %s: %w", project.Name, err)
	}
	err := r.reconcile(ctx, project)
	phase, condition := gardencorev1beta1.ProjectReady,
		conditions.New(ConditionReconciled, gardencorev1beta1.ConditionTrue, "ProjectReconciled",
			"Namespace and roles of the project are as they should be.")
	if err != nil {
		phase, condition = gardencorev1beta1.ProjectFailed,
			conditions.New(ConditionReconciled, gardencorev1beta1.ConditionFalse, "ReconciliationFailed", err.Error())
	}
	if statusErr := r.updateStatus(ctx, project, phase, condition); err == nil {
		err = statusErr
	}
	if err != nil {
		err = fmt.Errorf("project %s: %w", project.Name, err)
	}
	return reconcile.Result{}, err
}

func (r *Reconciler) reconcile(ctx context.Context, project *gardencorev1beta1.Project) error {
	namespace := NamespaceOf(project)
	if err := r.ensureNamespace(ctx, project, namespace); err != nil {
		return err
	}
	// Before anybody can write to the namespace.
	if err := r.ensureQuota(ctx, project, namespace); err != nil {
		return err
	}
	if project.Spec.Namespace == nil {
		project.Spec.Namespace = &namespace
		if err := r.Client.Update(ctx, project); err != nil {
			return fmt.Errorf("writing spec.namespace: %w", err)
		}
	}
	for _, object := range slices.Concat(Access(project), ExtensionAccess(project)) {
		if err := apply(ctx, r.Client, object); err != nil {
			return fmt.Errorf("%T %s: %w", object, object.GetName(), err)
		}
	}
	return pruneExtensionAccess(ctx, r.Client, project, extensionRoles(project))
}

// NamespaceOf returns the namespace of a project: the one it names, or garden-<project>.
func NamespaceOf(project *gardencorev1beta1.Project) string {
	if name := ptr.Deref(project.Spec.Namespace, ""); name != "" {
		return name
	}
	if project.Name == gardencorev1beta1.GardenNamespace {
		return gardencorev1beta1.GardenNamespace
	}
	return gardencorev1beta1.ProjectNamePrefix + project.Name
}

// ensureNamespace creates the namespace, or adopts one that is labelled for the project.
func (r *Reconciler) ensureNamespace(ctx context.Context, project *gardencorev1beta1.Project, name string) error {
	namespace := &corev1.Namespace{}
	err := r.Client.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) {
		namespace.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: namespaceLabels(project)}
		return r.Client.Create(ctx, namespace)
	}
	if err != nil {
		return fmt.Errorf("namespace %s: %w", name, err)
	}
	if owner := namespace.Labels[gardencorev1beta1.ProjectName]; owner != project.Name {
		return fmt.Errorf("namespace %s exists already and is not labelled %s=%s: label it, or choose another in "+
			"spec.namespace", name, gardencorev1beta1.ProjectName, project.Name)
	}
	patched := namespace.DeepCopy()
	if mergeLabels(patched, namespaceLabels(project)) {
		return r.Client.Patch(ctx, patched, client.MergeFrom(namespace))
	}
	return nil
}

func namespaceLabels(project *gardencorev1beta1.Project) map[string]string {
	return map[string]string{
		gardencorev1beta1.GardenRole:  gardencorev1beta1.GardenRoleProject,
		gardencorev1beta1.ProjectName: project.Name,
	}
}

// mergeLabels sets labels and tells whether that changed anything.
func mergeLabels(object client.Object, wanted map[string]string) bool {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	changed := false
	for key, value := range wanted {
		if labels[key] != value {
			labels[key], changed = value, true
		}
	}
	object.SetLabels(labels)
	return changed
}

func (r *Reconciler) updateStatus(ctx context.Context, project *gardencorev1beta1.Project,
	phase gardencorev1beta1.ProjectPhase, condition gardencorev1beta1.Condition) error {
	before := project.DeepCopy()
	project.Status.Phase = phase
	project.Status.ObservedGeneration = project.Generation
	project.Status.Conditions = conditions.Set(project.Status.Conditions, condition, time.Now())
	if apiequality.Semantic.DeepEqual(before.Status, project.Status) {
		return nil
	}
	return client.IgnoreNotFound(r.Client.Status().Patch(ctx, project, client.MergeFrom(before)))
}

// delete removes what the project was given, once its last shoot is gone.
func (r *Reconciler) delete(ctx context.Context, project *gardencorev1beta1.Project) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(project, gardencorev1beta1.GardenerName) {
		return reconcile.Result{}, nil
	}
	condition := conditions.New(ConditionReconciled, gardencorev1beta1.ConditionProgressing, "ProjectDeletion",
		"The project is being deleted.")
	if err := r.updateStatus(ctx, project, gardencorev1beta1.ProjectTerminating, condition); err != nil {
		return reconcile.Result{}, fmt.Errorf("status of project %s: %w", project.Name, err)
	}
	gone, err := r.cleanUp(ctx, project)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("deleting project %s: %w", project.Name, err)
	}
	if !gone {
		return reconcile.Result{RequeueAfter: deletionRetry}, nil
	}
	return reconcile.Result{}, finalizer.Remove(ctx, r.Client, project, gardencorev1beta1.GardenerName)
}

// cleanUp takes steps towards an empty garden and tells whether nothing is left.
func (r *Reconciler) cleanUp(ctx context.Context, project *gardencorev1beta1.Project) (gone bool, err error) {
	namespace := NamespaceOf(project)
	shoots := &gardencorev1beta1.ShootList{}
	if err := r.Client.List(ctx, shoots, client.InNamespace(namespace)); err != nil {
		return false, fmt.Errorf("listing shoots: %w", err)
	}
	if len(shoots.Items) > 0 {
		ctrl.LoggerFrom(ctx).Info("Waiting for the project's shoots to be deleted", "shoots", len(shoots.Items))
		return false, nil
	}
	gone, err = r.releaseNamespace(ctx, project, namespace)
	if err != nil || !gone {
		return false, err
	}
	for _, object := range Access(project) {
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, object)); err != nil {
			return false, fmt.Errorf("%T %s: %w", object, object.GetName(), err)
		}
	}
	return true, pruneExtensionAccess(ctx, r.Client, project, nil)
}

// releaseNamespace deletes the namespace, or lets go of it when it is to be kept.
func (r *Reconciler) releaseNamespace(ctx context.Context, project *gardencorev1beta1.Project,
	name string) (gone bool, err error) {
	namespace := &corev1.Namespace{}
	err = r.Client.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("namespace %s: %w", name, err)
	}
	if namespace.Labels[gardencorev1beta1.ProjectName] != project.Name {
		return true, nil
	}
	if name == gardencorev1beta1.GardenNamespace || namespace.Annotations[keepNamespace] == "true" {
		before := namespace.DeepCopy()
		delete(namespace.Labels, gardencorev1beta1.ProjectName)
		delete(namespace.Labels, gardencorev1beta1.GardenRole)
		return true, r.Client.Patch(ctx, namespace, client.MergeFrom(before))
	}
	if namespace.DeletionTimestamp == nil {
		return false, client.IgnoreNotFound(r.Client.Delete(ctx, namespace))
	}
	return false, nil
}
