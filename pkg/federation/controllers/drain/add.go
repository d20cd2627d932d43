package drain

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/setup"
	"github.com/trellis-garden/trellis/pkg/federation/members"
)

// Add registers the controller with a manager; settings gives those of a controller with that reconciler.
func Add(mgr manager.Manager, pool *members.Pool, settings setup.Settings) error {
	connection := func(name string) (client.Client, bool) {
		member, connected := pool.Get(name)
		if !connected {
			return nil, false
		}
		return member.Client(), true
	}
	d := &drain{client: mgr.GetClient(), now: time.Now, leases: map[string]lease{}, connection: connection}
	return setup.Add(mgr, "drain", settings(d),
		setup.Objects(mgr.GetCache(), &clusterv1alpha1.Cluster{}, listeningChanged()),
		setup.Concerned(mgr.GetCache(), &workv1alpha1.Work{}, memberOf, comesOrGoes()),
	)
}

// memberOf tells the member that a Work is for.
func memberOf(_ context.Context, work *workv1alpha1.Work) []reconcile.Request {
	name, ok := clusterv1alpha1.ClusterOf(work.Namespace)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: name}}}
}

// comesOrGoes ignores what Works say: only which there are matters.
func comesOrGoes() predicate.TypedFuncs[*workv1alpha1.Work] {
	return predicate.TypedFuncs[*workv1alpha1.Work]{
		UpdateFunc: func(event.TypedUpdateEvent[*workv1alpha1.Work]) bool { return false },
	}
}

// listeningChanged passes what makes a member one that is told, and taints.
func listeningChanged() predicate.TypedPredicate[*clusterv1alpha1.Cluster] {
	return predicate.Or[*clusterv1alpha1.Cluster](
		predicate.TypedGenerationChangedPredicate[*clusterv1alpha1.Cluster]{},
		predicate.TypedFuncs[*clusterv1alpha1.Cluster]{
			UpdateFunc: func(e event.TypedUpdateEvent[*clusterv1alpha1.Cluster]) bool {
				return isListening(e.ObjectOld) != isListening(e.ObjectNew)
			},
		},
	)
}
