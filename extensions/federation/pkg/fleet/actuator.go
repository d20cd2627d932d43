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
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/trellis-garden/trellis/extensions/federation/pkg/apis"
	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	"github.com/trellis-garden/trellis/extensions/pkg/disruptionbudget"
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
func (a *Actuator) Reconcile(ctx context.Context, log logr.Logger, object *extensionsv1alpha1.Extension,
	shoot *cluster.Cluster) error {
	if shoot.IsHibernated() {
		return a.stop(ctx, log, object.Namespace)
	}
	values := deploymentValues{image: a.Image, availability: shoot.Availability(), serves: reachesSeed(shoot)}
	var err error
	if values.config, err = configOf(object); err != nil {
		return err
	}
	if values.kubeconfig, err = shoot.GenericTokenKubeconfig(); err != nil {
		return err
	}
	if values.egressClient, err = shoot.EgressClient(); err != nil {
		return err
	}
	if err := a.prepareFleet(ctx, object.Namespace); err != nil {
		return err
	}
	return a.deploy(ctx, object.Namespace, values)
}

// prepareFleet brings into the fleet what the controllers need there.
func (a *Actuator) prepareFleet(ctx context.Context, namespace string) error {
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
	return ApplyRBAC(ctx, fleet)
}

// deploy brings what runs in the seed up to date.
func (a *Actuator) deploy(ctx context.Context, namespace string, values deploymentValues) error {
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
		func() error { fillService(service, values.availability); return nil }); err != nil {
		return fmt.Errorf("service %s/%s: %w", namespace, service.Name, err)
	}
	if err := disruptionbudget.Apply(ctx, a.Client, values.availability, namespace, Name, labels()); err != nil {
		return err
	}
	if values.availability.IsHigh() && values.serves {
		var err error
		if values.certificate, err = a.ensureCertificate(ctx, namespace); err != nil {
			return err
		}
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name}}
	if _, err := controllerutil.CreateOrPatch(ctx, a.Client, deployment,
		func() error { fillDeployment(deployment, values); return nil }); err != nil {
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

// stop scales the controllers to nothing: their API is about to be away. One that is alone gives back by itself that it
// serves the API of members; of several none does, as the others might go on.
func (a *Actuator) stop(ctx context.Context, log logr.Logger, namespace string) error {
	deployment := &appsv1.Deployment{}
	err := a.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: Name}, deployment)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	replicas := ptr.Deref(deployment.Spec.Replicas, 1)
	before := client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Replicas = new(int32)
	if err := a.Client.Patch(ctx, deployment, before); err != nil {
		return fmt.Errorf("stopping deployment %s/%s: %w", namespace, Name, err)
	}
	if replicas > 1 {
		a.unpublish(ctx, log, namespace)
	}
	return nil
}

// Delete removes the controllers. What was propagated stays in the members: to take it away, delete the policies first.
func (a *Actuator) Delete(ctx context.Context, log logr.Logger, object *extensionsv1alpha1.Extension,
	_ *cluster.Cluster) error {
	a.unpublish(ctx, log, object.Namespace)
	meta := metav1.ObjectMeta{Namespace: object.Namespace, Name: Name}
	for _, removed := range []client.Object{
		&appsv1.Deployment{ObjectMeta: meta}, &policyv1.PodDisruptionBudget{ObjectMeta: meta},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: certificateName}},
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

// unpublish has the fleet's API serve Clusters by itself, if it answers.
func (a *Actuator) unpublish(ctx context.Context, log logr.Logger, namespace string) {
	ctx, cancel := context.WithTimeout(ctx, unpublishTimeout)
	defer cancel()
	fleet, err := cluster.ShootClient(ctx, a.Client, namespace, a.FleetScheme)
	if err == nil {
		err = memberapi.Unpublish(ctx, fleet)
	}
	if err != nil {
		log.Error(err, "The fleet's API may still look for the controllers; one that is alone takes that back itself "+
			"when it ends")
	}
}
