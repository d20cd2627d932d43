// Package bastion is the Bastion controller of provider-local: a bastion is an SSH server of the local cloud that leads
// to the machines of the shoot.
package bastion

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/apis"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/credentials"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/bastionaccess"
)

// Add registers the controller.
func Add(mgr manager.Manager, source credentials.Source) error {
	return extension.Add(mgr, extension.Options[*extensionsv1alpha1.Bastion]{
		Kind:     extensionsv1alpha1.BastionResource,
		Type:     apis.Type,
		Actuator: &actuator{credentials: source},
	})
}

type actuator struct {
	credentials credentials.Source
}

// Reconcile implements extension.Actuator. The cloud of the operator has the machines, so it has the way to them, too.
func (a *actuator) Reconcile(ctx context.Context, _ logr.Logger, bastion *extensionsv1alpha1.Bastion,
	_ *cluster.Cluster) error {
	access, err := bastionaccess.Parse(bastion.Spec.UserData)
	if err != nil {
		return extension.WithCodes(err, gardencorev1beta1.ErrorConfigurationProblem)
	}
	cloud, err := a.credentials.Client(ctx, corev1.SecretReference{})
	if err != nil {
		return err
	}
	made, err := cloud.PutBastion(ctx, wanted(bastion, access))
	if err != nil {
		return api.WithCodes(err)
	}
	bastion.Status.Ingress = &corev1.LoadBalancerIngress{IP: made.Address}
	return nil
}

// Delete implements extension.Actuator.
func (a *actuator) Delete(ctx context.Context, _ logr.Logger, bastion *extensionsv1alpha1.Bastion,
	_ *cluster.Cluster) error {
	cloud, err := a.credentials.Client(ctx, corev1.SecretReference{})
	if err != nil {
		return err
	}
	return api.WithCodes(cloud.DeleteBastion(ctx, nameOf(bastion)))
}

// nameOf is the name of a bastion in the cloud. Names of namespaces have no dots.
func nameOf(bastion *extensionsv1alpha1.Bastion) string {
	return bastion.Namespace + "." + bastion.Name
}

// wanted is what the cloud is asked for. The network of a shoot has the name of its namespace.
func wanted(bastion *extensionsv1alpha1.Bastion, access bastionaccess.Access) api.Bastion {
	result := api.Bastion{
		Name: nameOf(bastion), Network: bastion.Namespace,
		AuthorizedKey: access.AuthorizedKey, HostKey: access.HostKey,
	}
	for _, policy := range bastion.Spec.Ingress {
		result.Ingress = append(result.Ingress,
			networkingv1.IPBlock{CIDR: policy.IPBlock.CIDR, Except: policy.IPBlock.Except})
	}
	return result
}
