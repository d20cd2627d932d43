package admission

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/extensionuse"
)

// BastionName is the name of the plugin that completes bastions from their shoots.
const BastionName = "Bastion"

// bastion says where a bastion is to be made: in the seed and at the provider of its shoot.
type bastion struct {
	*admission.Handler
	dependent
}

var _ admission.MutationInterface = &bastion{}

func newBastion() *bastion {
	return &bastion{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Admit implements admission.MutationInterface.
func (b *bastion) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	bastion, old, ok := written[*operationsv1alpha1.Bastion](a)
	if !ok {
		return nil
	}
	if old != nil {
		keepBastion(bastion, old)
		return nil
	}
	shoot, err := get[*gardencorev1beta1.Shoot](ctx, b.Reader, gardencorev1beta1.Resource("shoots"), bastion.Namespace,
		bastion.Spec.ShootRef.Name)
	if err != nil && !isMissing(err) {
		return apierrors.NewInternalError(err)
	}
	if errs := completeBastion(bastion, shoot, a.GetUserInfo().GetName()); len(errs) > 0 {
		return invalid(a, errs)
	}
	registrations, err := list[*gardencorev1beta1.ControllerRegistration](ctx, b.Reader,
		gardencorev1beta1.Resource("controllerregistrations"), "", fields.Everything())
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	return invalid(a, validateBastionIsOffered(*bastion.Spec.ProviderType, registered(registrations)))
}

// validateBastionIsOffered refuses bastions that no extension would make.
func validateBastionIsOffered(provider string,
	offered offers) field.ErrorList {
	if _, found := offered[extensionuse.KindType{Kind: extensionsv1alpha1.BastionResource, Type: provider}]; found {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "shootRef", "name"), fmt.Sprintf(
		"no ControllerRegistration offers bastions of the shoot's provider %q; reach its nodes through Kubernetes, "+
			"as with kubectl debug node/<name>", provider))}
}

// keepBastion keeps what only admission writes.
func keepBastion(bastion, old *operationsv1alpha1.Bastion) {
	bastion.Spec.SeedName, bastion.Spec.ProviderType = old.Spec.SeedName, old.Spec.ProviderType
	if creator, ok := old.Annotations[gardencorev1beta1.GardenerCreatedBy]; ok {
		setAnnotation(bastion, gardencorev1beta1.GardenerCreatedBy, creator)
	}
}

// completeBastion takes seed and provider from the shoot (nil if there is none of the name).
func completeBastion(bastion *operationsv1alpha1.Bastion, shoot *gardencorev1beta1.Shoot,
	creator string) field.ErrorList {
	path, name := field.NewPath("spec", "shootRef", "name"), bastion.Spec.ShootRef.Name
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "name the shoot to whose machines the bastion leads")}
	case shoot == nil:
		return field.ErrorList{field.NotFound(path, bastion.Namespace+"/"+name)}
	case shoot.DeletionTimestamp != nil:
		return field.ErrorList{field.Invalid(path, name, "the shoot is being deleted")}
	case shoot.Spec.SeedName == nil:
		return field.ErrorList{
			field.Invalid(path, name, "the shoot has not been assigned to a seed yet: wait until its spec.seedName "+
				"is set"),
		}
	case gardencorev1beta1.IsWorkerless(shoot):
		return field.ErrorList{field.Invalid(path, name, "the shoot has no workers, so there is no machine to reach")}
	case !gardencorev1beta1.SSHAccessEnabled(&shoot.Spec):
		return field.ErrorList{
			field.Invalid(path, name, "the shoot allows no SSH: set its "+
				"spec.provider.workersSettings.sshAccess.enabled"),
		}
	}
	seed, provider := *shoot.Spec.SeedName, shoot.Spec.Provider.Type
	bastion.Spec.SeedName, bastion.Spec.ProviderType = &seed, &provider
	setAnnotation(bastion, gardencorev1beta1.GardenerCreatedBy, creator)
	return nil
}
