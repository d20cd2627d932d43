package controllers

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/setup"
)

// addLeaving has the agent note that its member is to leave the fleet.
func addLeaving(mgr manager.Manager, options Options, agent AgentOptions) error {
	return setup.Add(mgr, "leaving", typedOptions[reconcile.Request](options, noteLeaving(agent)),
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

// noteLeaving reads nothing: who is woken knows it.
func noteLeaving(agent AgentOptions) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		if err := agent.Leaving(ctx); err != nil {
			return reconcile.Result{}, fmt.Errorf("noting that member %s is to leave the fleet: %w", agent.Name, err)
		}
		return reconcile.Result{}, nil
	})
}
