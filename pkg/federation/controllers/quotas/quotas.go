// Package quotas brings FederatedResourceQuotas to members, as ResourceQuotas of the clusters that have an assignment,
// and tells in their status what is used. That the overall limit holds is the scheduling controller's part (package
// quota).
package quotas

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/setup"
)

// quotas handles FederatedResourceQuotas.
type quotas struct {
	client client.Client
}

// Add registers the controller with a manager; settings gives those of a controller with that reconciler.
func Add(mgr manager.Manager, settings setup.Settings) error {
	q := &quotas{client: mgr.GetClient()}
	return setup.Add(mgr, "quotas", settings(q),
		setup.Specs(mgr.GetCache(), &policyv1alpha1.FederatedResourceQuota{}),
		setup.Concerned(mgr.GetCache(), &workv1alpha1.Work{}, ofWork),
		setup.Concerned(mgr.GetCache(), &workv1alpha2.ResourceBinding{}, q.ofBinding,
			predicate.TypedGenerationChangedPredicate[*workv1alpha2.ResourceBinding]{}),
		setup.Concerned(mgr.GetCache(), &clusterv1alpha1.Cluster{}, q.ofCluster,
			predicate.TypedGenerationChangedPredicate[*clusterv1alpha1.Cluster]{}),
	)
}

// ofWork tells the quota that a Work was made from.
func ofWork(_ context.Context, work *workv1alpha1.Work) []reconcile.Request {
	name := work.Labels[policyv1alpha1.FederatedResourceQuotaNameLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{
		{
			NamespacedName: types.NamespacedName{
				Namespace: work.Labels[policyv1alpha1.FederatedResourceQuotaNamespaceLabel], Name: name,
			},
		},
	}
}

func (q *quotas) ofBinding(ctx context.Context, b *workv1alpha2.ResourceBinding) []reconcile.Request {
	return q.list(ctx, func(*policyv1alpha1.FederatedResourceQuota) bool { return true },
		client.InNamespace(b.Namespace))
}

// ofCluster tells the quotas that have an assignment for a cluster.
func (q *quotas) ofCluster(ctx context.Context, cluster *clusterv1alpha1.Cluster) []reconcile.Request {
	return q.list(ctx, func(f *policyv1alpha1.FederatedResourceQuota) bool {
		for _, a := range f.Spec.StaticAssignments {
			if a.ClusterName == cluster.Name {
				return true
			}
		}
		return false
	})
}

func (q *quotas) list(ctx context.Context, concerned func(*policyv1alpha1.FederatedResourceQuota) bool,
	options ...client.ListOption) []reconcile.Request {
	var all policyv1alpha1.FederatedResourceQuotaList
	if err := q.client.List(ctx, &all, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if concerned(&all.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}

// Reconcile handles one FederatedResourceQuota.
func (q *quotas) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var works workv1alpha1.WorkList
	if err := q.client.List(ctx, &works, client.MatchingLabels(labelsOf(request.NamespacedName))); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing Works: %w", err)
	}
	federated := &policyv1alpha1.FederatedResourceQuota{}
	err := q.client.Get(ctx, request.NamespacedName, federated)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if err != nil || federated.DeletionTimestamp != nil {
		return reconcile.Result{}, q.removeOthers(ctx, works.Items, nil)
	}
	wanted, err := q.ensureAll(ctx, federated, works.Items)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := q.removeOthers(ctx, works.Items, wanted); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, q.writeStatus(ctx, federated, works.Items)
}

func labelsOf(key types.NamespacedName) map[string]string {
	return map[string]string{
		policyv1alpha1.FederatedResourceQuotaNamespaceLabel: key.Namespace,
		policyv1alpha1.FederatedResourceQuotaNameLabel:      key.Name,
	}
}

// ensureAll writes the Works of all assignments whose clusters there are, and gives their namespaces. A cluster that
// joins later wakes the quota.
func (q *quotas) ensureAll(ctx context.Context, federated *policyv1alpha1.FederatedResourceQuota,
	existing []workv1alpha1.Work) (map[string]bool, error) {
	byNamespace := map[string]*workv1alpha1.Work{}
	for i := range existing {
		byNamespace[existing[i].Namespace] = &existing[i]
	}
	wanted := map[string]bool{}
	for _, assignment := range federated.Spec.StaticAssignments {
		cluster := &clusterv1alpha1.Cluster{}
		err := q.client.Get(ctx, types.NamespacedName{Name: assignment.ClusterName}, cluster)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if err != nil || cluster.DeletionTimestamp != nil {
			continue
		}
		work, err := buildWork(federated, assignment)
		if err != nil {
			return nil, err
		}
		wanted[work.Namespace] = true
		if err := q.ensure(ctx, work, byNamespace[work.Namespace]); err != nil {
			return nil, err
		}
	}
	return wanted, nil
}

func buildWork(federated *policyv1alpha1.FederatedResourceQuota,
	assignment policyv1alpha1.StaticClusterAssignment) (*workv1alpha1.Work, error) {
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ResourceQuota",
		"metadata": map[string]any{"namespace": federated.Namespace, "name": federated.Name},
		"spec":     corev1.ResourceQuotaSpec{Hard: assignment.Hard},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the ResourceQuota of cluster %s: %w", assignment.ClusterName, err)
	}
	h := fnv.New32a()
	fmt.Fprintf(h, "%s-%s-FederatedResourceQuota", federated.Namespace, federated.Name)
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: clusterv1alpha1.ExecutionNamespace(assignment.ClusterName),
		Name:      federated.Name + "-" + utilrand.SafeEncodeString(fmt.Sprint(h.Sum32())),
		Labels:    labelsOf(client.ObjectKeyFromObject(federated)), Finalizers: []string{workv1alpha1.Finalizer},
		Annotations: map[string]string{workv1alpha1.ConflictResolutionAnnotation: workv1alpha1.ConflictAbort},
	}}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
	return work, nil
}

func (q *quotas) ensure(ctx context.Context, wanted, existing *workv1alpha1.Work) error {
	if existing == nil {
		if err := q.client.Create(ctx, wanted); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating Work %s: %w", client.ObjectKeyFromObject(wanted), err)
		}
		return nil
	}
	if existing.DeletionTimestamp != nil || sameManifests(existing, wanted) {
		return nil
	}
	updated := existing.DeepCopy()
	updated.Spec = wanted.Spec
	if err := q.client.Update(ctx, updated); err != nil {
		return fmt.Errorf("updating Work %s: %w", client.ObjectKeyFromObject(wanted), err)
	}
	return nil
}

// sameManifests compares what the manifests mean: the API server may have written them in another order.
func sameManifests(a, b *workv1alpha1.Work) bool {
	if len(a.Spec.Workload.Manifests) != 1 {
		return false
	}
	var one, other map[string]any
	return json.Unmarshal(a.Spec.Workload.Manifests[0].Raw, &one) == nil &&
		json.Unmarshal(b.Spec.Workload.Manifests[0].Raw, &other) == nil &&
		apiequality.Semantic.DeepEqual(one, other)
}

// removeOthers removes the Works outside of the given namespaces.
func (q *quotas) removeOthers(ctx context.Context, works []workv1alpha1.Work, wanted map[string]bool) error {
	for i := range works {
		work := &works[i]
		if wanted[work.Namespace] || work.DeletionTimestamp != nil {
			continue
		}
		if err := q.client.Delete(ctx, work,
			client.Preconditions{UID: new(work.UID)}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing Work %s: %w", client.ObjectKeyFromObject(work), err)
		}
	}
	return nil
}

func (q *quotas) writeStatus(ctx context.Context, federated *policyv1alpha1.FederatedResourceQuota,
	works []workv1alpha1.Work) error {
	var bindings workv1alpha2.ResourceBindingList
	if err := q.client.List(ctx, &bindings, client.InNamespace(federated.Namespace),
		client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ResourceBindings: %w", err)
	}
	status, err := statusOf(&federated.Spec, bindings.Items, works)
	if err != nil || apiequality.Semantic.DeepEqual(status, federated.Status) {
		return err
	}
	before := federated.DeepCopy()
	federated.Status = status
	if err := q.client.Status().Patch(ctx, federated,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the status of FederatedResourceQuota %s: %w", client.ObjectKeyFromObject(federated),
			err)
	}
	return nil
}
