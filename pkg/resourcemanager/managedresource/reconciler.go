package managedresource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/few"
	"github.com/trellis-garden/trellis/pkg/finalizer"
	"github.com/trellis-garden/trellis/pkg/managedresources"
	"github.com/trellis-garden/trellis/pkg/resourcemanager/target"
)

const (
	// retryKind is how soon objects are tried again whose kind the server does not know yet.
	retryKind = 500 * time.Millisecond
	// retryGone is how soon deleted objects are looked for again.
	retryGone = 300 * time.Millisecond
)

// Reconciler applies ManagedResources.
type Reconciler struct {
	// Client reads ManagedResources from a cache and writes them.
	Client client.Client
	// Reader reads Secrets from the API server: their data is not kept in memory.
	Reader client.Reader
	// Targets hands out clients.
	Targets *target.Registry
	// ClusterID is the first part of the origin annotation.
	ClusterID string
	// SyncPeriod is how often unchanged objects are applied again, so that changes made in the target are undone.
	SyncPeriod time.Duration
	// Clock is the real one if nil.
	Clock clock.Clock

	applied sync.Map // client.ObjectKey → *record
}

// record remembers what was applied last, so that looking at the health does not mean applying everything again.
type record struct {
	checksum   string
	generation int64
	at         time.Time
	// watched are the objects with a health of their own.
	watched []*unstructured.Unstructured
	// unhealthySince is when health was last fine; zero when it is.
	unhealthySince time.Time
}

// Reconcile brings one ManagedResource to its target.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := r.Client.Get(ctx, req.NamespacedName, mr); err != nil {
		r.applied.Delete(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if class := ptr.Deref(mr.Spec.Class, ""); class != "" && class != resourcesv1alpha1.ClassSeed {
		return ctrl.Result{}, nil
	}
	if mr.Annotations[resourcesv1alpha1.Ignore] == "true" {
		return ctrl.Result{}, r.report(ctx, mr, func(s *statusUpdate) {
			s.set(resourcesv1alpha1.ResourcesApplied, gardencorev1beta1.ConditionTrue,
				resourcesv1alpha1.ConditionManagedResourceIgnored,
				"The annotation "+resourcesv1alpha1.Ignore+" stops all work on this ManagedResource.")
		})
	}
	if mr.DeletionTimestamp != nil {
		return r.delete(ctx, mr)
	}
	return r.reconcile(ctx, mr)
}

// target returns the cluster of a ManagedResource when its API server answers.
func (r *Reconciler) target(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (*target.Target, error) {
	if ptr.Deref(mr.Spec.Class, "") == resourcesv1alpha1.ClassSeed {
		return r.seed(ctx, mr.Namespace)
	}
	t, err := r.Targets.Shoot(ctx, mr.Namespace)
	if err != nil {
		return nil, err
	}
	return t, t.Ready(ctx)
}

// applier returns what works on the target for mr.
func (r *Reconciler) applier(t *target.Target, mr *resourcesv1alpha1.ManagedResource) applier {
	return applier{
		client: t.Client, origin: Origin(r.ClusterID, mr), inject: mr.Spec.InjectLabels,
		ownLabels:      ptr.Deref(mr.Spec.ForceOverwriteLabels, false),
		ownAnnotations: ptr.Deref(mr.Spec.ForceOverwriteAnnotations, false),
		deleteClaims:   ptr.Deref(mr.Spec.DeletePersistentVolumeClaims, false),
	}
}

// Origin is the value of resourcesv1alpha1.OriginAnnotation for a ManagedResource.
func Origin(clusterID string, mr *resourcesv1alpha1.ManagedResource) string {
	return clusterID + ":" + mr.Namespace + "/" + mr.Name
}

// reconcile is the path of a ManagedResource that is not being deleted.
func (r *Reconciler) reconcile(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (ctrl.Result, error) {
	if err := finalizer.Ensure(ctx, r.Client, mr, finalizerOf(mr)); err != nil {
		return ctrl.Result{}, err
	}
	t, err := r.target(ctx, mr)
	if err != nil {
		return r.waitForTarget(ctx, mr, t, err)
	}
	secrets, err := r.secrets(ctx, mr)
	if err != nil {
		return r.failed(ctx, mr, "SecretMissing", err)
	}

	key, checksum := client.ObjectKeyFromObject(mr), Checksum(secrets)
	if rec, ok := r.recent(key, checksum, mr.Generation); ok {
		return r.lookAt(ctx, mr, t, rec)
	}
	objects, err := decodeAll(secrets)
	if err != nil {
		return r.failed(ctx, mr, resourcesv1alpha1.ConditionDecodingFailed, err)
	}
	return r.apply(ctx, mr, t, objects, checksum)
}

// recent returns the record of the last apply if nothing changed since and it is younger than the sync period.
func (r *Reconciler) recent(key client.ObjectKey, checksum string, generation int64) (*record, bool) {
	value, ok := r.applied.Load(key)
	if !ok {
		return nil, false
	}
	rec := value.(*record)
	fresh := rec.checksum == checksum && rec.generation == generation && r.now().Sub(rec.at) < r.SyncPeriod-time.Second
	return rec, fresh
}

// apply writes all objects, removes those no longer listed, and reports.
func (r *Reconciler) apply(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, t *target.Target,
	objects []*unstructured.Unstructured, checksum string) (ctrl.Result, error) {
	a := r.applier(t, mr)
	a.scope(objects)
	objects = slices.DeleteFunc(objects, ignored)
	refs := references(objects)

	// What is about to be created is written down first: whoever is killed in between must not leave orphans.
	stale := Stale(mr.Status.Resources, refs, Equivalences(mr.Spec.Equivalences))
	if err := r.remember(ctx, mr, append(slices.Clone(refs), stale...)); err != nil {
		return ctrl.Result{}, err
	}

	out := a.apply(ctx, objects)
	remaining, removeErr := r.removeStale(ctx, a, mr, stale)
	if err := errors.Join(out.err, removeErr); err != nil {
		r.applied.Delete(client.ObjectKeyFromObject(mr))
		if !isAnswer(err) {
			t.Suspect()
		}
		return r.failed(ctx, mr, resourcesv1alpha1.ConditionApplyFailed, err)
	}

	rec := &record{checksum: checksum, generation: mr.Generation, at: r.now(), watched: slim(out.live)}
	if previous, ok := r.applied.Load(client.ObjectKeyFromObject(mr)); ok {
		rec.unhealthySince = previous.(*record).unhealthySince
	}
	health := healthOf(out.live, nil)
	err := r.report(ctx, mr, func(s *statusUpdate) {
		s.status.ObservedGeneration = mr.Generation
		s.status.Resources = append(refs, remaining...)
		SortReferences(s.status.Resources)
		s.status.SecretsDataChecksum = &checksum
		s.applied(out.pending, remaining)
		s.health(health)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(out.pending) > 0 || len(remaining) > 0 {
		return ctrl.Result{RequeueAfter: retryKind}, nil
	}
	r.applied.Store(client.ObjectKeyFromObject(mr), rec)
	return ctrl.Result{RequeueAfter: r.nextLook(rec, health)}, nil
}

// removeStale deletes what is no longer listed, unless objects are to be kept.
func (r *Reconciler) removeStale(ctx context.Context, a applier, mr *resourcesv1alpha1.ManagedResource,
	stale []resourcesv1alpha1.ObjectReference) ([]resourcesv1alpha1.ObjectReference, error) {
	if ptr.Deref(mr.Spec.KeepObjects, false) {
		return nil, nil
	}
	return a.remove(ctx, stale)
}

// lookAt reports the health of what was applied before.
func (r *Reconciler) lookAt(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, t *target.Target,
	rec *record) (ctrl.Result, error) {
	live, gone, err := r.applier(t, mr).read(ctx, rec.watched)
	if err != nil {
		t.Suspect()
		return ctrl.Result{}, err
	}
	if len(gone) > 0 {
		// Someone deleted an object: apply again at once.
		r.applied.Delete(client.ObjectKeyFromObject(mr))
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil
	}
	health := healthOf(live, gone)
	if err := r.report(ctx, mr, func(s *statusUpdate) { s.health(health) }); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: r.nextLook(rec, health)}, nil
}

// nextLook says when to come back: soon while something is under way, rarely when all is well.
func (r *Reconciler) nextLook(rec *record, h health) time.Duration {
	untilSync := max(r.SyncPeriod-r.now().Sub(rec.at), time.Second)
	if h.fine() {
		rec.unhealthySince = time.Time{}
		return untilSync
	}
	if rec.unhealthySince.IsZero() {
		rec.unhealthySince = r.now()
	}
	if r.now().Sub(rec.unhealthySince) < 2*time.Minute {
		return time.Second
	}
	return min(untilSync, 10*time.Second)
}

// waitForTarget comes back until the target's API server answers. The Secret's arrival is watched, so its absence needs
// no polling.
func (r *Reconciler) waitForTarget(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, t *target.Target,
	err error) (ctrl.Result, error) {
	if errors.Is(err, target.ErrNoTarget) {
		return ctrl.Result{RequeueAfter: r.SyncPeriod}, nil
	}
	if !errors.Is(err, target.ErrNotReady) {
		return ctrl.Result{}, err
	}
	r.applied.Delete(client.ObjectKeyFromObject(mr))
	return ctrl.Result{RequeueAfter: t.RetryAfter()}, nil
}

// delete removes the objects from the target, then the finalizer.
func (r *Reconciler) delete(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(mr, finalizerOf(mr)) {
		return ctrl.Result{}, nil
	}
	r.applied.Delete(client.ObjectKeyFromObject(mr))
	if ptr.Deref(mr.Spec.KeepObjects, false) || len(mr.Status.Resources) == 0 {
		return ctrl.Result{}, finalizer.Remove(ctx, r.Client, mr, finalizerOf(mr))
	}
	t, err := r.target(ctx, mr)
	if errors.Is(err, target.ErrNoTarget) {
		// Without a way into the shoot there is no shoot any more, and with it its objects are gone.
		return ctrl.Result{}, finalizer.Remove(ctx, r.Client, mr, finalizerOf(mr))
	}
	if err != nil {
		return r.waitForTarget(ctx, mr, t, err)
	}

	resources, err := r.leftBehind(ctx, mr)
	if err != nil {
		return ctrl.Result{}, err
	}
	remaining, err := r.applier(t, mr).removeByRank(ctx, resources)
	if err != nil {
		return r.failed(ctx, mr, resourcesv1alpha1.ConditionDeletionFailed, err)
	}
	if len(remaining) == 0 {
		return ctrl.Result{}, finalizer.Remove(ctx, r.Client, mr, finalizerOf(mr))
	}
	err = r.report(ctx, mr, func(s *statusUpdate) {
		s.status.Resources = remaining
		s.set(resourcesv1alpha1.ResourcesApplied, gardencorev1beta1.ConditionProgressing,
			resourcesv1alpha1.ConditionDeletionPending, "Waiting until these objects are gone: "+names(remaining))
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: retryGone}, nil
}

// removeByRank deletes in the reverse order of applying: a rank is only begun when the higher ones are gone.
func (a applier) removeByRank(ctx context.Context,
	refs []resourcesv1alpha1.ObjectReference) ([]resourcesv1alpha1.ObjectReference, error) {
	remaining := slices.Clone(refs)
	for rank := lastRank; rank >= 0; rank-- {
		now, later := split(remaining, rank)
		left, err := a.remove(ctx, now)
		remaining = append(later, left...)
		if err != nil || len(left) > 0 {
			SortReferences(remaining)
			return remaining, err
		}
	}
	return remaining, nil
}

// split separates the references of one rank from the others.
func split(refs []resourcesv1alpha1.ObjectReference, rank int) (of, others []resourcesv1alpha1.ObjectReference) {
	for _, ref := range refs {
		if Rank(ref.GroupVersionKind().GroupKind().String()) == rank {
			of = append(of, ref)
		} else {
			others = append(others, ref)
		}
	}
	return of, others
}

// secrets reads the data of all referenced Secrets.
func (r *Reconciler) secrets(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) ([]map[string][]byte, error) {
	var all []map[string][]byte
	for _, ref := range mr.Spec.SecretRefs {
		secret := &corev1.Secret{}
		if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: mr.Namespace, Name: ref.Name}, secret); err != nil {
			return nil, fmt.Errorf("reading Secret %s/%s of spec.secretRefs: %w", mr.Namespace, ref.Name, err)
		}
		all = append(all, secret.Data)
	}
	return all, nil
}

// decodeAll decodes the manifests of all Secrets.
func decodeAll(secrets []map[string][]byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, data := range secrets {
		decoded, err := managedresources.Decode(data)
		if err != nil {
			return nil, err
		}
		objects = append(objects, decoded...)
	}
	return objects, nil
}

// remember writes the references to the status if it lacks one.
func (r *Reconciler) remember(ctx context.Context, mr *resourcesv1alpha1.ManagedResource,
	refs []resourcesv1alpha1.ObjectReference) error {
	if len(Stale(refs, mr.Status.Resources, nil)) == 0 {
		return nil
	}
	SortReferences(refs)
	return r.report(ctx, mr, func(s *statusUpdate) {
		s.status.Resources = refs
		if conditions.Get(s.status.Conditions, resourcesv1alpha1.ResourcesApplied) == nil {
			s.set(resourcesv1alpha1.ResourcesApplied, gardencorev1beta1.ConditionProgressing,
				resourcesv1alpha1.ConditionApplyProgressing, "The objects are being applied.")
		}
	})
}

// finalizerOf depends on the class.
func finalizerOf(mr *resourcesv1alpha1.ManagedResource) string {
	if class := ptr.Deref(mr.Spec.Class, ""); class != "" {
		return resourcesv1alpha1.FinalizerName + "-" + class
	}
	return resourcesv1alpha1.FinalizerName
}

// failed reports an error in the condition ResourcesApplied and returns it for a retry with back-off.
func (r *Reconciler) failed(ctx context.Context, mr *resourcesv1alpha1.ManagedResource, reason string,
	cause error) (ctrl.Result, error) {
	err := r.report(ctx, mr, func(s *statusUpdate) {
		s.status.ObservedGeneration = mr.Generation
		s.set(resourcesv1alpha1.ResourcesApplied, gardencorev1beta1.ConditionFalse, reason, cause.Error())
	})
	if apierrors.IsConflict(cause) && err == nil {
		return ctrl.Result{RequeueAfter: retryGone}, nil
	}
	return ctrl.Result{}, errors.Join(cause, err)
}

// statusUpdate is a status under change.
type statusUpdate struct {
	status *resourcesv1alpha1.ManagedResourceStatus
	now    time.Time
}

// set writes one condition.
func (s *statusUpdate) set(t gardencorev1beta1.ConditionType, status gardencorev1beta1.ConditionStatus,
	reason, message string) {
	s.status.Conditions = conditions.Set(s.status.Conditions, conditions.New(t, status, reason, message), s.now)
}

// applied writes the condition ResourcesApplied after a run without errors.
func (s *statusUpdate) applied(pending []string, remaining []resourcesv1alpha1.ObjectReference) {
	switch {
	case len(pending) > 0:
		s.set(resourcesv1alpha1.ResourcesApplied, gardencorev1beta1.ConditionProgressing,
			resourcesv1alpha1.ConditionApplyProgressing,
			"The API server does not know the kinds of these objects yet: "+strings.Join(pending, ", "))
	case len(remaining) > 0:
		s.set(resourcesv1alpha1.ResourcesApplied, gardencorev1beta1.ConditionProgressing,
			resourcesv1alpha1.ConditionDeletionPending,
			"Waiting until these objects are gone: "+names(remaining))
	default:
		s.set(resourcesv1alpha1.ResourcesApplied, gardencorev1beta1.ConditionTrue,
			resourcesv1alpha1.ConditionApplySucceeded, "All objects are applied.")
	}
}

// health writes the conditions ResourcesHealthy and ResourcesProgressing.
func (s *statusUpdate) health(h health) {
	if h.unhealthy == "" {
		s.set(resourcesv1alpha1.ResourcesHealthy, gardencorev1beta1.ConditionTrue, "ResourcesHealthy",
			"All objects are healthy.")
	} else {
		s.set(resourcesv1alpha1.ResourcesHealthy, gardencorev1beta1.ConditionFalse, h.unhealthyKind+"Unhealthy",
			h.unhealthy)
	}
	if h.progressing == "" {
		s.set(resourcesv1alpha1.ResourcesProgressing, gardencorev1beta1.ConditionFalse, "ResourcesRolledOut",
			"All objects have settled.")
	} else {
		s.set(resourcesv1alpha1.ResourcesProgressing, gardencorev1beta1.ConditionTrue, h.progressingKind+"Progressing",
			h.progressing)
	}
}

// report changes the status and writes it if that made a difference.
func (r *Reconciler) report(ctx context.Context, mr *resourcesv1alpha1.ManagedResource,
	change func(*statusUpdate)) error {
	before := mr.DeepCopy()
	change(&statusUpdate{status: &mr.Status, now: r.now()})
	if apiequality.Semantic.DeepEqual(before.Status, mr.Status) {
		return nil
	}
	return client.IgnoreNotFound(r.Client.Status().Patch(ctx, mr, client.MergeFrom(before)))
}

func (r *Reconciler) now() time.Time {
	if r.Clock == nil {
		return time.Now()
	}
	return r.Clock.Now()
}

// health is that of several objects; it names the first that is not well.
type health struct {
	unhealthy, unhealthyKind     string
	progressing, progressingKind string
}

// fine says that there is nothing to come back for soon.
func (h health) fine() bool { return h.unhealthy == "" && h.progressing == "" }

// healthOf sums up objects.
func healthOf(live []*unstructured.Unstructured, gone []string) health {
	var h health
	slices.SortFunc(live, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(describe(a), describe(b))
	})
	for _, object := range live {
		one := CheckHealth(object)
		if one.Unhealthy != "" && h.unhealthy == "" {
			h.unhealthy, h.unhealthyKind = describe(object)+": "+one.Unhealthy, object.GetKind()
		}
		if one.Progressing != "" && h.progressing == "" {
			h.progressing, h.progressingKind = describe(object)+": "+one.Progressing, object.GetKind()
		}
	}
	if len(gone) > 0 && h.unhealthy == "" {
		h.unhealthy, h.unhealthyKind = "missing: "+strings.Join(gone, ", "), "Object"
	}
	return h
}

// references lists objects in a stable order.
func references(objects []*unstructured.Unstructured) []resourcesv1alpha1.ObjectReference {
	refs := make([]resourcesv1alpha1.ObjectReference, 0, len(objects))
	for _, object := range objects {
		refs = append(refs, Reference(object))
	}
	SortReferences(refs)
	return refs
}

// slim keeps what is needed to read objects again.
func slim(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, object := range objects {
		key := &unstructured.Unstructured{}
		key.SetGroupVersionKind(object.GroupVersionKind())
		key.SetNamespace(object.GetNamespace())
		key.SetName(object.GetName())
		out = append(out, key)
	}
	return out
}

// names lists references for a message, at most five.
func names(refs []resourcesv1alpha1.ObjectReference) string {
	list := make([]string, 0, len(refs))
	for _, ref := range refs {
		list = append(list, strings.TrimSuffix(ref.Kind+" "+ref.Namespace+"/"+ref.Name, "/"))
	}
	return few.Joined(list, 5, ", ")
}

// isAnswer says whether the API server answered, if only with an error.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

var _ reconcile.Reconciler = &Reconciler{}
