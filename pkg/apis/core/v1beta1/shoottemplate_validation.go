package v1beta1

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateShootTemplate checks what Shoots of a namespace are made from: as a Shoot, with the defaults that it will
// have.
func ValidateShootTemplate(template *ShootTemplate, namespace string, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(template.Labels, path.Child("metadata", "labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(template.Annotations,
		path.Child("metadata", "annotations"))...)
	shoot := &Shoot{ObjectMeta: template.ObjectMeta, Spec: *template.Spec.DeepCopy()}
	shoot.Namespace = namespace
	SetDefaultsShoot(shoot)
	errs = append(errs, notOfferedToShoots(&shoot.Spec, path.Child("spec"))...)
	errs = append(errs, validateNodesFit(&shoot.Spec, path.Child("spec"))...)
	return append(errs, ValidateShootSpec(&shoot.Spec, namespace, path.Child("spec"))...)
}

// ValidateShootTemplateUpdate checks that the Shoots that were made from a template can follow its change.
func ValidateShootTemplateUpdate(template, old *ShootTemplate, path *field.Path) field.ErrorList {
	return validateShootSpecUpdate(&template.Spec, &old.Spec, path.Child("spec"))
}
