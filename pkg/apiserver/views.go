package apiserver

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	gardencorev1 "github.com/trellis-garden/trellis/pkg/apis/core/v1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apiserver/registry"
	"github.com/trellis-garden/trellis/pkg/apiserver/workloadidentity"
)

// addViews serves what has no storage of its own: another version of a kind, and subresources with a payload of another
// kind.
func addViews(served map[schema.GroupVersion]map[string]rest.Storage, stores registry.Stores,
	tokens *workloadidentity.Issuer) error {
	deployments, err := registry.ControllerDeploymentsV1(Scheme, stores)
	if err != nil {
		return err
	}
	scale, err := registry.ManagedSeedSetScale(stores)
	if err != nil {
		return err
	}
	served[gardencorev1.SchemeGroupVersion] = map[string]rest.Storage{"controllerdeployments": deployments}
	served[seedmanagementv1alpha1.SchemeGroupVersion]["managedseedsets/scale"] = scale
	served[securityv1alpha1.SchemeGroupVersion]["workloadidentities/token"] = &workloadidentity.REST{
		Identities: stores[securityv1alpha1.Resource("workloadidentities")], Reader: stores, Issuer: tokens,
		Clock: clock.RealClock{},
	}
	return nil
}
