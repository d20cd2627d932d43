package admission

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/extensionuse"
)

// ControllerRegistrationsName is the name of the plugin that keeps extensions apart, and those registered that are
// used.
const ControllerRegistrationsName = "ControllerRegistrationResources"

// controllerRegistrations makes sure that for each kind and type of extension one registration is primary, so that two
// controllers never act on the same object, and that a registration keeps what shoots and seeds ask for and nobody else
// offers.
type controllerRegistrations struct {
	*admission.Handler
	dependent
}

var _ admission.ValidationInterface = &controllerRegistrations{}

func newControllerRegistrations() *controllerRegistrations {
	return &controllerRegistrations{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Validate implements admission.ValidationInterface.
func (c *controllerRegistrations) Validate(ctx context.Context, a admission.Attributes,
	_ admission.ObjectInterfaces) error {
	registration, old, ok := written[*gardencorev1beta1.ControllerRegistration](a)
	if !ok || registration.DeletionTimestamp != nil {
		return nil
	}
	others, err := list[*gardencorev1beta1.ControllerRegistration](ctx, c.Reader,
		gardencorev1beta1.Resource("controllerregistrations"), "", fields.Everything())
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	errs := validatePrimaries(registration, others)
	if old == nil {
		return invalid(a, errs)
	}
	kept, err := c.validateKept(ctx, registration, old, others)
	return respond(a, append(errs, kept...), err)
}

// validateKept reports an extension that the registration offered, that nobody would offer any more, and that is used.
func (c *controllerRegistrations) validateKept(ctx context.Context,
	registration, old *gardencorev1beta1.ControllerRegistration,
	all []*gardencorev1beta1.ControllerRegistration) (field.ErrorList, error) {
	dropped := offeredOnlyBy(registration.Name, withOne(all, old))
	for extension := range registered([]*gardencorev1beta1.ControllerRegistration{registration}) {
		delete(dropped, extension)
	}
	var errs field.ErrorList
	for extension, resource := range dropped {
		users, err := usersOfExtensions(ctx, c.Reader,
			offers{extension: resource})
		if err != nil {
			return nil, err
		}
		if len(users) > 0 {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "resources"),
				fmt.Sprintf("%s of type %s must stay: it is used by %s, and no other controllerregistration offers it",
					extension.Kind, extension.Type, summary(users))))
		}
	}
	slices.SortFunc(errs, func(a, b *field.Error) int { return cmp.Compare(a.Detail, b.Detail) })
	return errs, nil
}

// withOne returns the registrations, with one in the place of the one of its name.
func withOne(registrations []*gardencorev1beta1.ControllerRegistration,
	one *gardencorev1beta1.ControllerRegistration) []*gardencorev1beta1.ControllerRegistration {
	others := slices.DeleteFunc(slices.Clone(registrations),
		func(other *gardencorev1beta1.ControllerRegistration) bool { return other.Name == one.Name })
	return append(others, one)
}

// validatePrimaries reports what is primary in another registration already.
func validatePrimaries(registration *gardencorev1beta1.ControllerRegistration,
	others []*gardencorev1beta1.ControllerRegistration) field.ErrorList {
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
				fmt.Sprintf("controllerregistration %q is the primary one for %s of type %s: set this to false", owner,
					resource.Kind, resource.Type)))
		}
	}
	return errs
}
