// Package fleet makes a shoot a fleet: it brings the fleet's APIs into the shoot and runs the federation controllers in
// the shoot's namespace of the seed.
package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trellis-garden/trellis/extensions/federation/pkg/apis"
	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	"github.com/trellis-garden/trellis/extensions/pkg/shootaccess"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	vpnv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/vpn/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/admission"
	"github.com/trellis-garden/trellis/pkg/federation/crds"
	"github.com/trellis-garden/trellis/pkg/federation/memberapi"
)

// Type is the type of Extension objects that this package is responsible for.
const Type = "federation"

const networkPolicyName = "allow-to-" + Name + "-member-api"

// Actuator implements extension.Actuator for Extension objects of type federation.
type Actuator struct {
	// Client is for the seed.
	Client client.Client
	// FleetScheme knows the kinds that are written into fleets.
	FleetScheme *runtime.Scheme
	// Image of the federation controllers.
	Image string
}

// Reconcile brings everything up to date. While the shoot is hibernated only the controllers are stopped.
func (a *Actuator) Reconcile(ctx context.Context, _ logr.Logger, object *extensionsv1alpha1.Extension,
	shoot *cluster.Cluster) error {
	namespace := object.Namespace
	if shoot.IsHibernated() {
		return a.stop(ctx, namespace)
	}
	config, err := configOf(object)
	if err != nil {
		return err
	}
	kubeconfig, err := shoot.GenericTokenKubeconfig()
	if err != nil {
		return err
	}
	egressClient, err := shoot.EgressClient()
	if err != nil {
		return err
	}
	fleet, err := cluster.ShootClient(ctx, a.Client, namespace, a.FleetScheme)
	if err != nil {
		return err
	}
	if err := crds.Install(ctx, fleet); err != nil {
		return err
	}
	if err := admission.Install(ctx, fleet); err != nil {
		return err
	}
	if err := ApplyRBAC(ctx, fleet); err != nil {
		return err
	}
	if err := shootaccess.Request(ctx, a.Client, namespace, Name); err != nil {
		return err
	}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: networkPolicyName}}
	if _, err := controllerutil.CreateOrPatch(ctx, a.Client, policy,
		func() error { FillNetworkPolicy(policy); return nil }); err != nil {
		return fmt.Errorf("network policy %s/%s: %w", namespace, policy.Name, err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: vpnv1alpha1.ServedAPIs}}
	if _, err := controllerutil.CreateOrPatch(ctx, a.Client, service,
		func() error { fillService(service); return nil }); err != nil {
		return fmt.Errorf("service %s/%s: %w", namespace, service.Name, err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name}}
	if _, err := controllerutil.CreateOrPatch(ctx, a.Client, deployment, func() error {
		fillDeployment(deployment, kubeconfig, egressClient, a.Image, config)
		if reachesSeed(shoot) {
			serveMembers(&deployment.Spec.Template.Spec.Containers[0])
		}
		return nil
	}); err != nil {
		return fmt.Errorf("deployment %s/%s: %w", namespace, Name, err)
	}
	return nil
}

// configOf reads the settings of the fleet.
func configOf(object *extensionsv1alpha1.Extension) (apis.FleetConfig, error) {
	if object.Spec.ProviderConfig == nil {
		return ParseConfig(nil)
	}
	return ParseConfig(object.Spec.ProviderConfig.Raw)
}

// reachesSeed tells whether the fleet's kube-apiserver has a way to pods of its namespace in the seed for the APIs that
// others serve. With workers it looks for those in the shoot's own networks, through the tunnel.
func reachesSeed(shoot *cluster.Cluster) bool { return len(shoot.Shoot.Spec.Provider.Workers) == 0 }

// stop scales the controllers to nothing: their API is about to be away.
func (a *Actuator) stop(ctx context.Context, namespace string) error {
	deployment := &appsv1.Deployment{}
	err := a.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: Name}, deployment)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	before := client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Replicas = new(int32)
	return a.Client.Patch(ctx, deployment, before)
}

// Delete removes the controllers. What was propagated stays in the members: to take it away, delete the policies first.
func (a *Actuator) Delete(ctx context.Context, log logr.Logger, object *extensionsv1alpha1.Extension,
	_ *cluster.Cluster) error {
	if err := a.unpublish(ctx, object.Namespace); err != nil {
		log.Error(err, "The fleet's API may still look for the controllers; they take that back themselves when "+
			"they end")
	}
	for _, removed := range []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: Name}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: vpnv1alpha1.ServedAPIs}},
		&networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: networkPolicyName},
		},
	} {
		err := a.Client.Delete(ctx, removed, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %T %s: %w", removed, client.ObjectKeyFromObject(removed), err)
		}
	}
	return shootaccess.Revoke(ctx, a.Client, object.Namespace, Name)
}

// unpublishTimeout bounds the wait for a fleet whose API may be gone already.
const unpublishTimeout = 10 * time.Second

// unpublish has the fleet's API serve Clusters by itself.
func (a *Actuator) unpublish(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, unpublishTimeout)
	defer cancel()
	fleet, err := cluster.ShootClient(ctx, a.Client, namespace, a.FleetScheme)
	if err != nil {
		return err
	}
	return memberapi.Unpublish(ctx, fleet)
}
