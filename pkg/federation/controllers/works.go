package controllers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/rollouts"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
	"github.com/trellis-garden/trellis/pkg/federation/overrides"
	"github.com/trellis-garden/trellis/pkg/federation/ownwrites"
	"github.com/trellis-garden/trellis/pkg/federation/reservations"
	"github.com/trellis-garden/trellis/pkg/federation/wake"
	"github.com/trellis-garden/trellis/pkg/finalizer"
)

// works keeps one Work per binding and cluster, and brings the status of the Works back into the binding and its
// object. The status of bindings is its own: nobody else writes it. It follows from what the scheduler wrote into the
// binding, from the Works, from the clusters, and in three fields from the status before: how far the rollout is, since
// when copies are unhealthy, and the generation that the statuses of all copies last spoke of.
type works struct {
	client      client.Client
	events      events.EventRecorder
	interpreter *interpreter.Interpreter
	now         func() time.Time
	index       *wake.Index
	rollouts    *rollouts.Rollouts
	// written knows Works that the cache has not heard of yet.
	written *ownwrites.Client
	delay   *reportDelay
	// reservations hear what members run, which ends promises of room.
	reservations *reservations.Reservations
}

// Reconcile handles one binding.
func (w *works) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	b, err := bindings.Get(ctx, w.client, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	existing, err := w.worksOf(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if b == nil {
		w.delay.forget(request.NamespacedName)
		return reconcile.Result{}, w.removeAll(ctx, existing)
	}
	if b.GetDeletionTimestamp() != nil {
		w.delay.forget(request.NamespacedName)
		return reconcile.Result{}, w.tearDown(ctx, b, existing)
	}
	w.index.Set(request.NamespacedName, interestOf(b))
	template, err := bindings.GetTemplate(ctx, w.client, bindings.TemplateOf(b))
	if err != nil || template == nil || template.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, err
	}
	b, stage, err := w.rollouts.Stage(ctx, b, template, existing)
	if err != nil || b == nil {
		return reconcile.Result{}, err
	}
	failures, err := w.ensureAll(ctx, b, template, existing, stage)
	if err != nil {
		return reconcile.Result{}, err
	}
	w.reportReservations(b, existing, failures)
	if _, decided := karmada.DecidedOf(b); !decided && bindings.IsPlaced(b.BindingSpec()) {
		return reconcile.Result{}, nil // The first decision wakes the binding.
	}
	if wait, err := w.tooEarlyToReport(ctx, b, existing, failures); err != nil || wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, err
	}
	return reconcile.Result{RequeueAfter: stage.Wake()}, w.reportStatus(ctx, b, template, existing, failures, stage)
}

// tooEarlyToReport waits a moment for the reports of all members: that saves writes of what changes at once again.
func (w *works) tooEarlyToReport(ctx context.Context, b bindings.Binding, existing map[string]*workv1alpha1.Work,
	failures map[string]error) (time.Duration, error) {
	if !bindings.IsPlaced(b.BindingSpec()) {
		return 0, nil
	}
	all, err := w.allReported(ctx, b, existing, failures)
	if err != nil {
		return 0, err
	}
	return w.delay.wait(client.ObjectKeyFromObject(b), all), nil
}

// worksOf lists the Works of a binding by cluster. They are the cache's own and must not be changed.
func (w *works) worksOf(ctx context.Context, key types.NamespacedName) (map[string]*workv1alpha1.Work, error) {
	var list workv1alpha1.WorkList
	if err := w.client.List(ctx, &list, client.MatchingFields{workBindingIndex: key.String()},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the Works of binding %s: %w", key, err)
	}
	result := map[string]*workv1alpha1.Work{}
	for i := range list.Items {
		if cluster, ok := clusterv1alpha1.ClusterOf(list.Items[i].Namespace); ok {
			result[cluster] = &list.Items[i]
		}
	}
	return result, nil
}

// workBindingIndex indexes Works by the binding that they were made from.
const workBindingIndex = "binding"

func indexWork(object client.Object) []string {
	work, ok := object.(*workv1alpha1.Work)
	if !ok {
		return nil
	}
	key, ok := bindings.OfWork(work)
	if !ok {
		return nil
	}
	return []string{key.String()}
}

// tearDown removes the Works, and lets the binding go when none is left.
func (w *works) tearDown(ctx context.Context, b bindings.Binding, existing map[string]*workv1alpha1.Work) error {
	if err := w.tellWhatStays(ctx, b, existing); err != nil {
		return err
	}
	if err := w.removeAll(ctx, existing); err != nil {
		return err
	}
	held := bindings.Finalizer(b.GetNamespace())
	if len(existing) > 0 || !slices.Contains(b.GetFinalizers(), held) {
		return nil
	}
	if err := errors.Join(w.clearStatus(ctx, b), w.rollouts.End(ctx, b)); err != nil {
		return err
	}
	return finalizer.Remove(ctx, w.client, b, held)
}

func (w *works) removeAll(ctx context.Context, existing map[string]*workv1alpha1.Work) error {
	for _, work := range existing {
		if err := w.remove(ctx, work); err != nil {
			return err
		}
	}
	return nil
}

// removeMoved removes the Work of a cluster that the object left for others. spec.preserveResourcesOnDeletion is about
// objects that are given up; here a copy that stayed would be one too many. A cluster that leaves the fleet keeps what
// is preserved.
func (w *works) removeMoved(ctx context.Context, name string, work *workv1alpha1.Work) error {
	cluster, err := w.cluster(ctx, name)
	if err != nil {
		return err
	}
	if work.Spec.PreserveResourcesOnDeletion != nil && work.DeletionTimestamp == nil && cluster != nil &&
		cluster.DeletionTimestamp == nil {
		before := work.DeepCopy()
		work.Spec.PreserveResourcesOnDeletion = nil
		if err := w.client.Patch(ctx, work, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("updating Work %s: %w", client.ObjectKeyFromObject(work), err)
		}
	}
	return w.remove(ctx, work)
}

func (w *works) remove(ctx context.Context, work *workv1alpha1.Work) error {
	if work.DeletionTimestamp != nil {
		return nil
	}
	if err := w.client.Delete(ctx, work, client.Preconditions{UID: new(work.UID)}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing Work %s: %w", client.ObjectKeyFromObject(work), err)
	}
	return nil
}

// ensureAll writes the Works of all target clusters and removes the others; existing is what there is afterwards. A
// cluster for which no Work can be made keeps the one it has; the failure is returned by cluster.
func (w *works) ensureAll(ctx context.Context, b bindings.Binding, template *unstructured.Unstructured,
	existing map[string]*workv1alpha1.Work, stage *rollouts.Stage) (map[string]error, error) {
	policies, err := overrides.List(ctx, w.client, b.GetNamespace(), client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	leaving := departuresOf(b)
	mustWait, err := w.mustWait(ctx, leaving, existing)
	if err != nil {
		return nil, err
	}
	targets := map[string]bool{}
	failures := map[string]error{}
	wanted := map[string]*workv1alpha1.Work{}
	renderings := w.newRenderings(ctx, b, template, stage, policies)
	for _, target := range bindings.Targets(b.BindingSpec()) {
		targets[target.Name] = true
		w.refresh(existing, target.Name, workName(template))
		cluster, err := w.cluster(ctx, target.Name)
		if err != nil {
			return nil, err
		}
		if cluster == nil || mustWait && existing[target.Name] == nil {
			continue
		}
		work, err := buildWork(ctx, b, template, leaving.share(target), cluster, renderings)
		if err == nil {
			err = leaving.preserve(work, existing[target.Name], target.Name)
		}
		if err != nil {
			failures[target.Name] = err
			continue
		}
		wanted[target.Name] = work
	}
	if err := w.writeAll(ctx, wanted, existing, failures); err != nil {
		return nil, err
	}
	for cluster, work := range existing {
		if !targets[cluster] {
			if err := w.removeDeparted(ctx, leaving, cluster, work.DeepCopy()); err != nil {
				return nil, err
			}
		}
	}
	return failures, nil
}

// writesAtOnce is how many Works of one binding are written at a time: what waits for the API server doesn't hold up
// the others.
const writesAtOnce = 8

// writeAll goes on after failures. What the API server refuses, because it is too large for example, is one of the
// cluster's and not tried again until something changes.
func (w *works) writeAll(ctx context.Context, wanted, existing map[string]*workv1alpha1.Work,
	refused map[string]error) error {
	var group errgroup.Group
	group.SetLimit(writesAtOnce)
	var mu sync.Mutex
	var failures []error
	written := map[string]*workv1alpha1.Work{}
	for cluster, work := range wanted {
		known := existing[cluster]
		if known != nil && (known.DeletionTimestamp != nil || sameWork(known, work)) {
			// One that is being deleted is waited for: its removal wakes the binding.
			continue
		}
		group.Go(func() error {
			after, err := w.write(ctx, work, known)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				written[cluster] = after
			case isRefusal(err):
				refused[cluster] = err
			default:
				failures = append(failures, err)
			}
			return nil
		})
	}
	// The functions of the group keep their failures themselves, since it would keep only the first.
	_ = group.Wait()
	maps.Copy(existing, written)
	return errors.Join(failures...)
}

// isRefusal tells whether the API server will never take the object as it is.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		isTooLargeForEtcd(err)
}

// isTooLargeForEtcd knows how kube-apiserver passes on that etcd, or the client that it speaks to etcd by, refused an
// object.
func isTooLargeForEtcd(err error) bool {
	return apierrors.IsInternalError(err) &&
		(strings.Contains(err.Error(), "etcdserver: request is too large") ||
			strings.Contains(err.Error(), "trying to send message larger than max"))
}

// refresh takes a cluster's Work as it was written last, if the list is older.
func (w *works) refresh(existing map[string]*workv1alpha1.Work, cluster, name string) {
	work := &workv1alpha1.Work{}
	work.Namespace, work.Name = clusterv1alpha1.ExecutionNamespace(cluster), name
	if last, found := w.written.Newer(work, existing[cluster]).(*workv1alpha1.Work); found {
		existing[cluster] = last
	}
}

func coreTargets(b bindings.Binding) []core.Target {
	var targets []core.Target
	for _, c := range bindings.Targets(b.BindingSpec()) {
		targets = append(targets, core.Target{Cluster: c.Name, Replicas: c.Replicas})
	}
	return targets
}

// cluster gives nil for one that is gone.
func (w *works) cluster(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := w.client.Get(ctx, client.ObjectKey{Name: name}, cluster)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return cluster, err
}

// write creates or updates a Work, and gives what there is afterwards. known is not changed.
func (w *works) write(ctx context.Context, wanted, known *workv1alpha1.Work) (*workv1alpha1.Work, error) {
	if known == nil {
		if err := w.client.Create(ctx, wanted); err != nil {
			return nil, fmt.Errorf("creating Work %s: %w", client.ObjectKeyFromObject(wanted), err)
		}
		return wanted, nil
	}
	updated := known.DeepCopy()
	updated.Spec = wanted.Spec
	updated.Labels, updated.Annotations = wanted.Labels, wanted.Annotations
	if err := w.client.Update(ctx, updated); err != nil {
		return nil, fmt.Errorf("updating Work %s: %w", client.ObjectKeyFromObject(wanted), err)
	}
	return updated, nil
}

func sameWork(a, b *workv1alpha1.Work) bool {
	if !maps.Equal(a.Labels, b.Labels) || !maps.Equal(a.Annotations, b.Annotations) ||
		!apiequality.Semantic.DeepEqual(a.Spec.SuspendDispatching, b.Spec.SuspendDispatching) ||
		!apiequality.Semantic.DeepEqual(a.Spec.PreserveResourcesOnDeletion, b.Spec.PreserveResourcesOnDeletion) {
		return false
	}
	return slices.EqualFunc(a.Spec.Workload.Manifests, b.Spec.Workload.Manifests, sameManifest)
}

// sameManifest compares the text first, and what it means if that differs.
func sameManifest(a, b workv1alpha1.Manifest) bool {
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	var decodedA, decodedB map[string]any
	return json.Unmarshal(a.Raw, &decodedA) == nil && json.Unmarshal(b.Raw, &decodedB) == nil &&
		apiequality.Semantic.DeepEqual(decodedA, decodedB)
}

// buildWork gives the Work of one cluster.
func buildWork(ctx context.Context, b bindings.Binding, template *unstructured.Unstructured,
	target workv1alpha2.TargetCluster, cluster *clusterv1alpha1.Cluster,
	renderings *renderings) (*workv1alpha1.Work, error) {
	manifests, revision, err := renderings.of(cluster.Name)
	if err != nil {
		return nil, err
	}
	raw, record, err := manifests.encode(ctx, target, cluster)
	if err != nil {
		return nil, err
	}
	work := workFor(b, template, cluster.Name)
	if revision != "" {
		work.Annotations[workv1alpha2.RevisionAnnotation] = revision
	}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
	work.Spec.SuspendDispatching = suspended(b.BindingSpec().Suspension, cluster.Name)
	work.Spec.PreserveResourcesOnDeletion = b.BindingSpec().PreserveResourcesOnDeletion
	return work, recordOverrides(work, record)
}

func workFor(b bindings.Binding, template *unstructured.Unstructured, cluster string) *workv1alpha1.Work {
	work := &workv1alpha1.Work{}
	work.Namespace = clusterv1alpha1.ExecutionNamespace(cluster)
	work.Name = workName(template)
	work.Finalizers = []string{workv1alpha1.Finalizer}
	label := bindings.PermanentIDLabel(b.GetNamespace())
	work.Labels = map[string]string{label: b.GetLabels()[label]}
	work.Annotations = map[string]string{workv1alpha1.ConflictResolutionAnnotation: workv1alpha1.ConflictAbort}
	if b.BindingSpec().ConflictResolution == policyv1alpha1.ConflictOverwrite {
		work.Annotations[workv1alpha1.ConflictResolutionAnnotation] = workv1alpha1.ConflictOverwrite
	}
	if b.GetNamespace() == "" {
		work.Annotations[workv1alpha2.ClusterNameAnnotation] = b.GetName()
	} else {
		work.Annotations[workv1alpha2.NamespaceAnnotation] = b.GetNamespace()
		work.Annotations[workv1alpha2.NameAnnotation] = b.GetName()
	}
	return work
}

// workName is stable and differs between objects that share a name.
func workName(template *unstructured.Unstructured) string {
	h := fnv.New32a()
	fmt.Fprintf(h, "%s-%s-%s", template.GetNamespace(), template.GetName(), template.GetKind())
	return strings.ReplaceAll(strings.ToLower(template.GetName()), ":", ".") + "-" +
		utilrand.SafeEncodeString(fmt.Sprint(h.Sum32()))
}

func suspended(s *workv1alpha2.Suspension, cluster string) *bool {
	if s.SuspendsDispatching(cluster) {
		return new(true)
	}
	return nil
}

// recordOverrides notes on the Work which policies shaped it.
func recordOverrides(work *workv1alpha1.Work, record overrides.Record) error {
	for annotation, applied := range map[string][]overrides.Applied{
		policyv1alpha1.AppliedClusterOverridesAnnotation: record.ClusterPolicies,
		policyv1alpha1.AppliedOverridesAnnotation:        record.Policies,
	} {
		if len(applied) == 0 {
			continue
		}
		text, err := json.Marshal(applied)
		if err != nil {
			return fmt.Errorf("recording overrides: %w", err)
		}
		work.Annotations[annotation] = string(text)
	}
	return nil
}

// overrideFailed reports a policy that could not be applied.
func (w *works) overrideFailed(b bindings.Binding, template *unstructured.Unstructured, cluster string, failure error) {
	for _, regarding := range []runtime.Object{b, template} {
		w.events.Eventf(regarding, nil, corev1.EventTypeWarning, "ApplyOverridePolicyFailed", "Override",
			"cluster %s: %v", cluster, failure)
	}
}
