package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
)

const (
	// removalsTake is how long a member that answers may take for a removal until it is reported.
	removalsTake = 30 * time.Second
	// namedRemovals are told by name.
	namedRemovals = 5
)

// pendingRemovals are the objects that a member still has although they were taken away from it.
type pendingRemovals struct {
	count int
	// gone are those that the fleet doesn't have any more either, by the names of their bindings.
	gone []string
}

// pendingRemovalsIn a member. Those of one that answers count when they take long; what waits for a confirmation is
// told elsewhere.
func (c *clusters) pendingRemovalsIn(ctx context.Context, cluster *clusterv1alpha1.Cluster,
	away bool) (pendingRemovals, error) {
	var works workv1alpha1.WorkList
	namespace := clusterv1alpha1.ExecutionNamespace(cluster.Name)
	if err := c.client.List(ctx, &works, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return pendingRemovals{}, fmt.Errorf("listing the Works of cluster %s: %w", cluster.Name, err)
	}
	var result pendingRemovals
	for i := range works.Items {
		work := &works.Items[i]
		if work.DeletionTimestamp == nil || work.DeletionHeld() ||
			!away && c.now().Sub(work.DeletionTimestamp.Time) < removalsTake {
			continue
		}
		result.count++
		gone, err := c.isGone(ctx, work)
		if err != nil {
			return pendingRemovals{}, err
		}
		if gone != "" {
			result.gone = append(result.gone, gone)
		}
	}
	return result, nil
}

// isGone names the binding of a Work if that goes with its object; it is empty for what is only taken away from the
// member.
func (c *clusters) isGone(ctx context.Context, work *workv1alpha1.Work) (string, error) {
	key, made := bindings.OfWork(work)
	if !made {
		return client.ObjectKeyFromObject(work).String(), nil
	}
	b, err := bindings.Get(ctx, c.client, key)
	if err != nil || b != nil && b.GetDeletionTimestamp() == nil {
		return "", err
	}
	return strings.TrimPrefix(key.String(), "/"), nil
}

// condition tells of the removals; nil if there are none.
func (p pendingRemovals) condition(away bool) *metav1.Condition {
	if p.count == 0 {
		return nil
	}
	condition := &metav1.Condition{
		Type: clusterv1alpha1.ConditionRemovalPending, Status: metav1.ConditionTrue, Reason: "Removing",
	}
	message := fmt.Sprintf("%d objects are still in this member although they were taken away from it", p.count)
	if len(p.gone) > 0 {
		slices.Sort(p.gone)
		message += fmt.Sprintf("; %d of them the fleet does not have any more: %s", len(p.gone),
			strings.Join(p.gone[:min(len(p.gone), namedRemovals)], ", "))
		if len(p.gone) > namedRemovals {
			message += ", …"
		}
	}
	if away {
		condition.Reason = "NotReady"
		message += ". They are removed when the member is ready again"
	}
	condition.Message = message
	return condition
}

// setPendingRemovals tells in the status what is still to be removed from the member.
func (c *clusters) setPendingRemovals(ctx context.Context, cluster *clusterv1alpha1.Cluster,
	status *clusterv1alpha1.ClusterStatus) error {
	away := !meta.IsStatusConditionTrue(status.Conditions, clusterv1alpha1.ConditionReady)
	pending, err := c.pendingRemovalsIn(ctx, cluster, away)
	if err != nil {
		return err
	}
	if condition := pending.condition(away); condition != nil {
		meta.SetStatusCondition(&status.Conditions, *condition)
		return nil
	}
	meta.RemoveStatusCondition(&status.Conditions, clusterv1alpha1.ConditionRemovalPending)
	return nil
}

// tellWhatStays tells the users of an object that goes, before its Works are removed, what stays of it in members.
func (w *works) tellWhatStays(ctx context.Context, b bindings.Binding, existing map[string]*workv1alpha1.Work) error {
	var away, preserved []string
	for name, work := range existing {
		if work.DeletionTimestamp != nil {
			continue // It was told when that was asked for.
		}
		if preserve := work.Spec.PreserveResourcesOnDeletion; preserve != nil && *preserve {
			preserved = append(preserved, name)
			continue
		}
		cluster, err := w.cluster(ctx, name)
		if err != nil {
			return err
		}
		if cluster != nil && knownDown(cluster) {
			away = append(away, name)
		}
	}
	if len(away) > 0 {
		w.tellOfTemplate(b, corev1.EventTypeWarning, "RemovalPending", away,
			"until it can be removed: not ready at this time")
	}
	if len(preserved) > 0 {
		w.tellOfTemplate(b, corev1.EventTypeNormal, "ObjectPreserved", preserved,
			"because of spec.preserveResourcesOnDeletion")
	}
	return nil
}

// tellOfTemplate tells who looks at a binding or at its object, which may be gone already, in which clusters it stays.
func (w *works) tellOfTemplate(b bindings.Binding, kind, reason string, clusters []string, why string) {
	resource := b.BindingSpec().Resource
	slices.Sort(clusters)
	// Events hold 1024 characters.
	message := fmt.Sprintf("%s %s stays %s, in %.800s", resource.Kind, resource.Name, why, strings.Join(clusters, ", "))
	template := &corev1.ObjectReference{
		APIVersion: resource.APIVersion, Kind: resource.Kind, Namespace: b.GetNamespace(), Name: resource.Name,
		UID: resource.UID,
	}
	for _, regarding := range []runtime.Object{b, template} {
		w.events.Eventf(regarding, nil, kind, reason, "Remove", "%.1000s", message)
	}
}
