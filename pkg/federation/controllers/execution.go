package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-logr/logr"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apply"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/deletions"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
	"github.com/trellis-garden/trellis/pkg/federation/members"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
	"github.com/trellis-garden/trellis/pkg/finalizer"
)

// execution applies Works to members, keeps the objects there as the Works want them, and collects their status.
type execution struct {
	client      client.Client
	members     *members.Pool
	interpreter *interpreter.Interpreter
	// gate holds deletions that are too many at once.
	gate gate
	// serves tells whether this process talks to a member. The Works of others are left to their agents.
	serves func(*clusterv1alpha1.Cluster) bool
	// allows says why an object may not be managed in the member; nil allows everything.
	allows func(*unstructured.Unstructured) error
}

// gate that deletions in members pass.
type gate interface {
	Ask(ctx context.Context, work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster) (deletions.Answer, error)
}

// fieldManager owns in members what the fleet wants there.
const fieldManager = string(apply.Federation)

// errConflict is an object in a member that the fleet must not touch. Waiting may help, hurrying does not.
var errConflict = errors.New("the object exists in the member and is not managed by this fleet")

// errBeingDeleted is an object that somebody deletes in the member. Its end wakes the Work.
var errBeingDeleted = errors.New("the object is being deleted in the member; it comes back when it is gone")

// errAnother is a manifest of an object that the Work was not made for, or that would not be that object in the member.
var errAnother = errors.New("the manifest is of another object than the Work")

// errNotInterpreted is an object that the member has, and of which the fleet does not understand what became of it.
var errNotInterpreted = errors.New("the member has the object, but its state is not understood")

// Reconcile handles one Work.
func (e *execution) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	work := &workv1alpha1.Work{}
	if err := e.client.Get(ctx, request.NamespacedName, work); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	name, ok := clusterv1alpha1.ClusterOf(work.Namespace)
	if !ok {
		return reconcile.Result{}, nil
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := e.client.Get(ctx, types.NamespacedName{Name: name}, cluster); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	} else if err != nil {
		cluster = nil
	}
	if cluster != nil && !e.serves(cluster) {
		return e.relay(ctx, work, cluster)
	}
	if work.DeletionTimestamp != nil {
		return e.remove(ctx, work, name, cluster)
	}
	if cluster == nil {
		return reconcile.Result{}, nil
	}
	return e.apply(ctx, work, cluster)
}

// apply brings all manifests to the member. Nothing is tried while the member is known not to answer: its return
// wakes the Work.
func (e *execution) apply(ctx context.Context, work *workv1alpha1.Work,
	cluster *clusterv1alpha1.Cluster) (reconcile.Result, error) {
	if err := finalizer.Ensure(ctx, e.client, work, workv1alpha1.Finalizer); err != nil {
		return reconcile.Result{}, err
	}
	if work.Spec.SuspendDispatching != nil && *work.Spec.SuspendDispatching {
		return reconcile.Result{}, e.writeStatus(ctx, work, func(status *workv1alpha1.WorkStatus) {
			setCondition(status, workv1alpha1.ConditionDispatching, false, "SuspendDispatching",
				"Dispatching is suspended")
		})
	}
	member, connected := e.members.Get(cluster.Name)
	if !connected || knownDown(cluster) {
		return reconcile.Result{}, nil
	}
	statuses, failures := e.applyAll(ctx, member, work)
	err := e.writeStatus(ctx, work,
		func(status *workv1alpha1.WorkStatus) { fillStatus(status, work.Generation, statuses, failures) })
	return resultOf(failures, err)
}

func knownDown(cluster *clusterv1alpha1.Cluster) bool {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
	return ready != nil && ready.Status != metav1.ConditionTrue
}

// resultOf retries soon what may pass by itself, and later what somebody has to do something about.
func resultOf(failures []error, err error) (reconcile.Result, error) {
	var result reconcile.Result
	for _, failure := range failures {
		switch {
		case errors.Is(failure, errBeingDeleted):
		case errors.Is(failure, errConflict), errors.Is(failure, errAnother), errors.Is(failure, errForeignRole),
			errors.Is(failure, registration.ErrNotAllowed),
			errors.Is(failure, errNotInterpreted) && !errors.Is(failure, interpreter.ErrTemporary):
			result.RequeueAfter = retryConflict
		case apierrors.IsInvalid(failure) || apierrors.IsForbidden(failure):
			result.RequeueAfter = retryConflict
		default:
			err = errors.Join(err, failure)
		}
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return result, nil
}

// applyAll goes on after failures. Statuses are those of the manifests that the member has.
func (e *execution) applyAll(ctx context.Context, member *members.Member,
	work *workv1alpha1.Work) ([]workv1alpha1.ManifestStatus, []error) {
	var statuses []workv1alpha1.ManifestStatus
	var failures []error
	for i := range work.Spec.Workload.Manifests {
		status, err := e.applyManifest(ctx, member, work, i)
		if status != nil {
			statuses = append(statuses, *status)
		}
		if err != nil {
			failures = append(failures, err)
		}
	}
	return statuses, failures
}

func (e *execution) applyManifest(ctx context.Context, member *members.Member, work *workv1alpha1.Work,
	index int) (*workv1alpha1.ManifestStatus, error) {
	wanted, err := decodeManifest(work, index)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(isOf(work, wanted), e.check(wanted)); err != nil {
		return nil, describe(wanted, err)
	}
	mapping, err := member.Mapping(wanted.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot && wanted.GetNamespace() != "" {
		return nil, describe(wanted, fmt.Errorf("%w: in the member the kind has no namespaces", errAnother))
	}
	observed, err := member.Managed(ctx, mapping, wanted.GetNamespace(), wanted.GetName())
	if err != nil {
		return nil, describe(wanted, err)
	}
	failure := refuses(work, observed)
	if failure == nil {
		observed, failure = e.bring(ctx, member, mapping, work, wanted, observed)
	}
	if failure != nil {
		failure = describe(wanted, failure)
	}
	if observed == nil || errors.Is(failure, errConflict) {
		return nil, failure
	}
	status, err := e.manifestStatus(ctx, index, mapping, observed)
	return status, errors.Join(failure, err)
}

// isOf checks a manifest against the binding that the Work was made from: namespace and name of the object are those of
// the binding, or the Work's own name tells them. Works that people wrote themselves are of no binding.
func isOf(work *workv1alpha1.Work, wanted *unstructured.Unstructured) error {
	key, made := bindings.OfWork(work)
	if !made {
		return nil
	}
	isNamed := key.Name == bindings.Name(wanted.GetName(), wanted.GetKind()) || work.Name == workName(wanted)
	if !isNamed || key.Namespace != wanted.GetNamespace() {
		return fmt.Errorf("%w, which was made from binding %s", errAnother, key)
	}
	return nil
}

func describe(object *unstructured.Unstructured, err error) error {
	return fmt.Errorf("%s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
}

func decodeManifest(work *workv1alpha1.Work, index int) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(work.Spec.Workload.Manifests[index].Raw); err != nil {
		return nil, fmt.Errorf("spec.workload.manifests[%d]: %w", index, err)
	}
	return object, nil
}

// refuses says why an object that is there may not be changed.
func refuses(work *workv1alpha1.Work, observed *unstructured.Unstructured) error {
	switch {
	case observed == nil:
		return nil
	case observed.GetDeletionTimestamp() != nil:
		return errBeingDeleted
	case belongsTo(observed, work),
		work.Annotations[workv1alpha1.ConflictResolutionAnnotation] == workv1alpha1.ConflictOverwrite:
		return nil
	case isManaged(observed):
		return fmt.Errorf("%w but by Work %s/%s; set spec.conflictResolution: Overwrite in the policy to take it over",
			errConflict,
			observed.GetAnnotations()[workv1alpha1.NamespaceAnnotation],
			observed.GetAnnotations()[workv1alpha1.NameAnnotation])
	}
	return fmt.Errorf("%w; remove it there, or set spec.conflictResolution: Overwrite in the policy", errConflict)
}

func isManaged(observed *unstructured.Unstructured) bool {
	return observed.GetLabels()[workv1alpha1.ManagedLabel] == "true"
}

func belongsTo(observed *unstructured.Unstructured, work *workv1alpha1.Work) bool {
	a := observed.GetAnnotations()
	return a[workv1alpha1.NamespaceAnnotation] == work.Namespace && a[workv1alpha1.NameAnnotation] == work.Name
}

// bring makes the member's object what is wanted, unless it is already. It gives what the member has afterwards.
func (e *execution) bring(ctx context.Context, member *members.Member, mapping *meta.RESTMapping,
	work *workv1alpha1.Work, wanted, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if observed != nil {
		var err error
		if wanted, err = e.interpreter.Retain(ctx, wanted, observed); err != nil {
			return observed, err
		}
	}
	if err := mark(wanted, work); err != nil {
		return observed, err
	}
	if observed != nil && inSync(wanted, observed) {
		return observed, nil
	}
	if err := e.mayBind(ctx, member, work, wanted); err != nil {
		return observed, err
	}
	applied, err := serverSideApply(ctx, member, mapping, wanted)
	if apierrors.IsNotFound(err) && wanted.GetNamespace() != "" {
		if err := ensureNamespace(ctx, member, wanted.GetNamespace()); err != nil {
			return observed, err
		}
		applied, err = serverSideApply(ctx, member, mapping, wanted)
	}
	if err != nil {
		return observed, err
	}
	logr.FromContextOrDiscard(ctx).V(1).Info("Applied", "kind", wanted.GetKind(), "object",
		client.ObjectKeyFromObject(wanted))
	return applied, nil
}

// mark tells everybody that the object is managed, and by which Work.
func mark(object *unstructured.Unstructured, work *workv1alpha1.Work) error {
	bindings.SetLabel(object, workv1alpha1.ManagedLabel, "true")
	bindings.SetLabel(object, workv1alpha1.PermanentIDLabel, string(work.UID))
	bindings.SetAnnotation(object, workv1alpha1.NamespaceAnnotation, work.Namespace)
	bindings.SetAnnotation(object, workv1alpha1.NameAnnotation, work.Name)
	if resolution := work.Annotations[workv1alpha1.ConflictResolutionAnnotation]; resolution != "" {
		bindings.SetAnnotation(object, workv1alpha1.ConflictResolutionAnnotation, resolution)
	}
	hash, err := contentHash(object)
	if err != nil {
		return err
	}
	bindings.SetAnnotation(object, workv1alpha1.ContentHashAnnotation, hash)
	return nil
}

// serverSideApply goes through the member's own connection, whose requests are bounded and whose mapping is known:
// pkg/apply would need a client that discovers the kinds of every member.
func serverSideApply(ctx context.Context, member *members.Member, mapping *meta.RESTMapping,
	wanted *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ctx, cancel := members.RequestContext(ctx)
	defer cancel()
	return member.Resource(mapping, wanted.GetNamespace()).Apply(ctx, wanted.GetName(), wanted,
		metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
}

var namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}

// ensureNamespace creates the namespace that an object needs. It stays when the object goes: others may use it.
func ensureNamespace(ctx context.Context, member *members.Member, name string) error {
	mapping, err := member.Mapping(namespaceKind)
	if err != nil {
		return err
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(namespaceKind)
	namespace.SetName(name)
	ctx, cancel := members.RequestContext(ctx)
	defer cancel()
	_, err = member.Resource(mapping, "").Create(ctx, namespace, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	return nil
}

func (e *execution) manifestStatus(ctx context.Context, index int, mapping *meta.RESTMapping,
	observed *unstructured.Unstructured) (*workv1alpha1.ManifestStatus, error) {
	gvk := observed.GroupVersionKind()
	result := &workv1alpha1.ManifestStatus{
		Identifier: workv1alpha1.ResourceIdentifier{
			Ordinal: index, Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Resource: mapping.Resource.Resource,
			Namespace: observed.GetNamespace(), Name: observed.GetName(),
		},
	}
	health, healthErr := e.interpreter.Health(ctx, observed)
	result.Health = workv1alpha1.ResourceHealth(health)
	// Objects that are applied without a template's generation have none to report.
	generation, _ := strconv.ParseInt(observed.GetAnnotations()[workv1alpha1.TemplateGenerationAnnotation], 10, 64)
	reflected, err := e.interpreter.Reflect(ctx, observed, generation)
	if err = errors.Join(healthErr, err); err != nil {
		return result, fmt.Errorf("%w: %w", errNotInterpreted, err)
	}
	if reflected == nil {
		return result, nil
	}
	raw, err := json.Marshal(reflected)
	if err != nil {
		return nil, fmt.Errorf("status of %s %s: %w", gvk.Kind, observed.GetName(), err)
	}
	bounded, problem := boundStatus(&runtime.RawExtension{Raw: raw}, maxStatus)
	result.Status = bounded
	if problem != "" {
		return result, fmt.Errorf("%w: %s", errNotInterpreted, problem)
	}
	return result, nil
}

func fillStatus(status *workv1alpha1.WorkStatus, generation int64, statuses []workv1alpha1.ManifestStatus,
	failures []error) {
	if sameStatuses(status.ManifestStatuses, statuses) {
		statuses = status.ManifestStatuses
	}
	status.ManifestStatuses = statuses
	meta.RemoveStatusCondition(&status.Conditions, workv1alpha1.ConditionDispatching)
	applied := metav1.Condition{
		Type: workv1alpha1.ConditionApplied, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: "AppliedSuccessful", Message: "The member has all manifests",
	}
	if err := errors.Join(failures...); err != nil {
		applied.Reason, applied.Message = workv1alpha1.ReasonNotInterpreted, shorten(err.Error())
		if slices.ContainsFunc(failures, func(failure error) bool { return !errors.Is(failure, errNotInterpreted) }) {
			applied.Status, applied.Reason = metav1.ConditionFalse, "AppliedFailed"
		}
	}
	meta.SetStatusCondition(&status.Conditions, applied)
}

// sameStatuses compares by meaning: the text that was stored may have its fields in another order.
func sameStatuses(a, b []workv1alpha1.ManifestStatus) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Identifier != b[i].Identifier || a[i].Health != b[i].Health ||
			(a[i].Status == nil) != (b[i].Status == nil) {
			return false
		}
		if a[i].Status != nil && !sameManifest(workv1alpha1.Manifest{RawExtension: *a[i].Status},
			workv1alpha1.Manifest{RawExtension: *b[i].Status}) {
			return false
		}
	}
	return true
}

func setCondition(status *workv1alpha1.WorkStatus, conditionType string, isTrue bool, reason, message string) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: conditionType, Status: conditionStatus(isTrue), Reason: reason, Message: message,
	})
}

func (e *execution) writeStatus(ctx context.Context, work *workv1alpha1.Work,
	change func(*workv1alpha1.WorkStatus)) error {
	before := work.DeepCopy()
	change(&work.Status)
	if apiequality.Semantic.DeepEqual(before.Status, work.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := e.client.Status().Patch(ctx, work, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of Work %s: %w", client.ObjectKeyFromObject(work), err)
	}
	return nil
}
