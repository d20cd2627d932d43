package controllers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/setup"
)

// addLeaving has the agent note that its member is to leave the fleet, and tell the fleet that it has.
func addLeaving(mgr manager.Manager, options Options, agent AgentOptions) error {
	return setup.Add(mgr, "leaving",
		typedOptions[reconcile.Request](options, &leavingNotes{client: mgr.GetClient(), agent: agent}),
		leaves(mgr.GetCache(), agent.Name))
}

// leaves wakes by the events alone that tell that a member is to leave, or has left: the Cluster may be gone before
// anybody gets to look at it, and nobody else would tell the agent.
func leaves(objects cache.Cache, member string) source.Source {
	return setup.Objects(objects, &clusterv1alpha1.Cluster{},
		predicate.NewTypedPredicateFuncs(func(cluster *clusterv1alpha1.Cluster) bool {
			return cluster.Name == member && cluster.DeletionTimestamp != nil
		}))
}

// leavingNotes are taken without a look at the Cluster: who is woken knows enough.
type leavingNotes struct {
	client client.Client
	agent  AgentOptions
}

// Reconcile has the agent store that its member leaves, and then tells the fleet so, which waits for that.
func (n *leavingNotes) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if err := n.agent.Leaving(ctx); err != nil {
		return reconcile.Result{}, fmt.Errorf("noting that member %s is to leave the fleet: %w", n.agent.Name, err)
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := n.client.Get(ctx, client.ObjectKey{Name: n.agent.Name}, cluster); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := cluster.DeepCopy()
	if cluster.DeletionTimestamp == nil || !meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ConditionAgentLeaving, Status: metav1.ConditionTrue, Reason: "Stored",
		Message: "The agent removes itself when the member has left the fleet",
	}) {
		return reconcile.Result{}, nil
	}
	if err := n.client.Status().Patch(ctx, cluster,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("telling that the agent of member %s leaves with it: %w", cluster.Name,
			err)
	}
	return reconcile.Result{}, nil
}
