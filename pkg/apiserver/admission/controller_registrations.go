package admission

import (
	"context"
	"fmt"
	"github.com/trellis-garden/trellis/pkg/extensionuse"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// ControllerRegistrationsName is the name of the plugin that keeps extensions apart.
const ControllerRegistrationsName = "ControllerRegistrationResources"

// controllerRegistrations makes sure that for each kind and type of extension one registration is primary, so that two
// controllers never act on the same object.
type controllerRegistrations struct {
	*admission.Handler
	dependent
}

var _ admission.ValidationInterface = &controllerRegistrations{}

func newControllerRegistrations() *controllerRegistrations {
	return &controllerRegistrations{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Validate implements admission.ValidationInterface.
func (c *controllerRegistrations) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	registration, _, ok := written[*corev1beta1.ControllerRegistration](a)
	if !ok || registration.DeletionTimestamp != nil {
		return nil
	}
	others, err := list[*corev1beta1.ControllerRegistration](ctx, c.Reader, corev1beta1.Resource("controllerregistrations"), "", fields.Everything())
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	return invalid(a, validatePrimaries(registration, others))
}

// validatePrimaries reports what is primary in another registration already.
func validatePrimaries(registration *corev1beta1.ControllerRegistration, others []*corev1beta1.ControllerRegistration) field.ErrorList {
	owners := map[extensionuse.KindType]string{}
	for _, other := range others {
		if other.Name == registration.Name {
			continue
		}
		for _, resource := range other.Spec.Resources {
			if ptr.Deref(resource.Primary, true) {
				owners[extensionuse.KindType{Kind: resource.Kind, Type: resource.Type}] = other.Name
			}
		}
	}
	var errs field.ErrorList
	for i, resource := range registration.Spec.Resources {
		owner, taken := owners[extensionuse.KindType{Kind: resource.Kind, Type: resource.Type}]
		if taken && ptr.Deref(resource.Primary, true) {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "resources").Index(i).Child("primary"),
				fmt.Sprintf("controllerregistration %q is the primary one for %s of type %s: set this to false", owner, resource.Kind, resource.Type)))
		}
	}
	return errs
}
