// Package agents cares for the credentials of members' agents: it approves the certificates that accepted agents ask for to replace
// their own. New agents are accepted by people.
package agents

import (
	"context"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/setup"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// Add registers the controllers with a manager; settings gives those of a controller with that reconciler.
func Add(mgr manager.Manager, settings setup.Settings) error {
	a := &approval{client: mgr.GetClient()}
	ofMembers := predicate.NewTypedPredicateFuncs(func(r *certificatesv1.CertificateSigningRequest) bool {
		return r.Labels[registration.MemberLabel] != ""
	})
	return setup.Add(mgr, "agent-certificates", settings(a), setup.Objects(mgr.GetCache(), &certificatesv1.CertificateSigningRequest{}, ofMembers))
}

// approval approves what accepted agents ask for themselves.
type approval struct {
	client client.Client
}

// Reconcile handles one request. What is not an accepted agent's is left to people.
func (a *approval) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	signing := &certificatesv1.CertificateSigningRequest{}
	if err := a.client.Get(ctx, request.NamespacedName, signing); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !registration.IsPending(signing) {
		return reconcile.Result{}, nil
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := a.client.Get(ctx, client.ObjectKey{Name: signing.Labels[registration.MemberLabel]}, cluster); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !registration.IsRenewal(signing, cluster) {
		return reconcile.Result{}, nil
	}
	if err := registration.Approve(ctx, a.client, signing, "AgentRenewal", "The agent of member "+cluster.Name+" renews its own certificate"); err != nil {
		return reconcile.Result{}, err
	}
	logr.FromContextOrDiscard(ctx).Info("Approved the certificate that an agent renews", "member", cluster.Name)
	return reconcile.Result{}, nil
}
