package registry

import (
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"

	gardencorev1 "github.com/trellis-garden/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// ControllerDeploymentsV1 serves ControllerDeployments as core.gardener.cloud/v1, from the same store. The scheme
// converts them; they are stored as v1beta1.
func ControllerDeploymentsV1(scheme *runtime.Scheme, stores Stores) (rest.Storage, error) {
	kind := controllerDeployments()
	store, err := stores.store(kind.GroupResource())
	if err != nil {
		return nil, err
	}
	kind.Version = gardencorev1.SchemeGroupVersion
	kind.Validate = validateControllerDeploymentV1
	kind.ValidateUpdate = func(deployment, old *gardencorev1beta1.ControllerDeployment) field.ErrorList {
		errs := gardencorev1beta1.ValidateControllerDeploymentUpdate(deployment, old)
		if sameDeployment(deployment, old) {
			return errs
		}
		return append(errs, validateControllerDeploymentV1(deployment)...)
	}
	strategy := newStrategy(scheme, kind)
	own := *store
	own.CreateStrategy, own.UpdateStrategy, own.ResetFieldsStrategy = strategy, strategy, strategy
	own.DestroyFunc = nil // the store belongs to the other version
	return &resourceREST{Store: &own, shortNames: kind.ShortNames}, nil
}

// validateControllerDeploymentV1 reports fields as a client of v1 sees them.
func validateControllerDeploymentV1(deployment *gardencorev1beta1.ControllerDeployment) field.ErrorList {
	v1 := &gardencorev1.ControllerDeployment{}
	if err := gardencorev1.FromV1beta1(deployment, v1); err != nil {
		return field.ErrorList{field.InternalError(field.NewPath(""), err)}
	}
	return gardencorev1.ValidateControllerDeployment(v1)
}

// validateControllerDeployment reports fields as a client of v1beta1 sees them.
func validateControllerDeployment(deployment *gardencorev1beta1.ControllerDeployment) field.ErrorList {
	errs := gardencorev1beta1.ValidateControllerDeployment(deployment)
	if len(errs) > 0 {
		return errs
	}
	for _, err := range validateControllerDeploymentV1(deployment) {
		err.Field = fieldInV1beta1(err.Field)
		errs = append(errs, err)
	}
	return errs
}

func validateControllerDeploymentUpdate(deployment, old *gardencorev1beta1.ControllerDeployment) field.ErrorList {
	errs := gardencorev1beta1.ValidateControllerDeploymentUpdate(deployment, old)
	if len(errs) > 0 || sameDeployment(deployment, old) {
		return errs // finalizers and annotations have to stay changeable also when validation has become stricter
	}
	return validateControllerDeployment(deployment)
}

// sameDeployment tells whether nothing but metadata differs.
func sameDeployment(deployment, old *gardencorev1beta1.ControllerDeployment) bool {
	return deployment.Type == old.Type &&
		apiequality.Semantic.DeepEqual(deployment.ProviderConfig, old.ProviderConfig) &&
		deployment.Annotations[gardencorev1.MigrationResources] == old.Annotations[gardencorev1.MigrationResources]
}

// fieldInV1beta1 says where v1beta1 has what v1 has in a field.
func fieldInV1beta1(path string) string {
	switch {
	case path == "helm" || path == "helm.rawChart":
		return "providerConfig.chart"
	case strings.HasPrefix(path, "helm."):
		return "providerConfig." + strings.TrimPrefix(path, "helm.")
	case strings.HasPrefix(path, "resources"):
		return "metadata.annotations[" + gardencorev1.MigrationResources + "]" + strings.TrimPrefix(path, "resources")
	}
	return path
}
