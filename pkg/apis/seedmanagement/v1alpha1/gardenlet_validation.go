package v1alpha1

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1 "github.com/trellis-garden/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// ValidateGardenlet checks a new Gardenlet.
func ValidateGardenlet(gardenlet *Gardenlet) field.ErrorList {
	errs := append(validateGardenlet(gardenlet), notOfferedToGardenlets(&gardenlet.Spec, field.NewPath("spec"))...)
	return append(errs, operationNotOffered(gardenlet.Annotations[gardencorev1beta1.GardenerOperation])...)
}

// validateGardenlet checks what a Gardenlet must have however old it is.
func validateGardenlet(gardenlet *Gardenlet) field.ErrorList {
	errs := validateMeta(&gardenlet.ObjectMeta)
	errs = append(errs, validateOperation(&gardenlet.ObjectMeta, OperationForceRedeploy,
		gardencorev1beta1.GardenerOperationReconcile, gardencorev1beta1.GardenerOperationRenewKubeconfig)...)
	spec, path := &gardenlet.Spec, field.NewPath("spec")
	deployment := path.Child("deployment")
	errs = append(errs, validateDeployment(&spec.Deployment.GardenletDeployment, deployment)...)
	errs = append(errs, gardencorev1.ValidateOCIRepository(&spec.Deployment.Helm.OCIRepository,
		deployment.Child("helm", "ociRepository"))...)
	errs = append(errs, validateConfiguration(spec.Config, configRules{bootstrap: BootstrapToken, complete: true},
		path.Child("config"))...)
	if spec.KubeconfigSecretRef != nil && spec.KubeconfigSecretRef.Name == "" {
		errs = append(errs, field.Required(path.Child("kubeconfigSecretRef", "name"),
			"name the Secret with the kubeconfig"))
	}
	return errs
}

// ValidateGardenletUpdate checks a change of a Gardenlet.
func ValidateGardenletUpdate(gardenlet, old *Gardenlet) field.ErrorList {
	errs := validateMetaUpdate(&gardenlet.ObjectMeta, &old.ObjectMeta)
	errs = append(errs, validateOperationUpdate(&gardenlet.ObjectMeta, &old.ObjectMeta)...)
	errs = append(errs, validateGardenlet(gardenlet)...)
	path, operation := field.NewPath("spec"), gardenlet.Annotations[gardencorev1beta1.GardenerOperation]
	errs = append(errs, gardencorev1beta1.NewlyRefused(notOfferedToGardenlets(&gardenlet.Spec, path),
		notOfferedToGardenlets(&old.Spec, path))...)
	return append(errs, gardencorev1beta1.NewlyRefused(operationNotOffered(operation),
		operationNotOffered(old.Annotations[gardencorev1beta1.GardenerOperation]))...)
}

// ValidateGardenletStatusUpdate checks a change of the status of a Gardenlet.
func ValidateGardenletStatusUpdate(gardenlet, old *Gardenlet) field.ErrorList {
	errs := validateMetaUpdate(&gardenlet.ObjectMeta, &old.ObjectMeta)
	return append(errs, apivalidation.ValidateNonnegativeField(gardenlet.Status.ObservedGeneration,
		field.NewPath("status", "observedGeneration"))...)
}
