package admission

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// ManagedSeedName is the name of the plugin for shoots that are seeds.
const ManagedSeedName = "ManagedSeed"

// managedSeed keeps shoots that are seeds alive, and refuses to make seeds of shoots that are not fit for it.
type managedSeed struct {
	*admission.Handler
	dependent
}

var _ admission.ValidationInterface = &managedSeed{}

func newManagedSeed() *managedSeed {
	return &managedSeed{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete)}
}

// Validate implements admission.ValidationInterface.
func (m *managedSeed) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() == admission.Delete {
		return m.validateDelete(ctx, a)
	}
	if shoot, old, ok := changedShoot(a); ok && old != nil && shoot.Namespace == gardencorev1beta1.GardenNamespace {
		managed, err := m.managedSeedOf(ctx, shoot.Name)
		if err != nil || managed == nil {
			return respond(a, nil, err)
		}
		return invalid(a, validateShootOfManagedSeed(shoot, managed))
	}
	managed, old, ok := written[*seedmanagementv1alpha1.ManagedSeed](a)
	if !ok || old != nil || managed.Spec.Shoot == nil || managed.Spec.Shoot.Name == "" {
		return nil
	}
	errs, err := m.validateNew(ctx, managed)
	return respond(a, errs, err)
}

// validateDelete keeps the shoot below a seed.
func (m *managedSeed) validateDelete(ctx context.Context, a admission.Attributes) error {
	shoot, ok := a.GetOldObject().(*gardencorev1beta1.Shoot)
	if !ok || a.GetSubresource() != "" || shoot.Namespace != gardencorev1beta1.GardenNamespace ||
		shoot.DeletionTimestamp != nil {
		return nil
	}
	managed, err := m.managedSeedOf(ctx, shoot.Name)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if managed == nil {
		return nil
	}
	return admission.NewForbidden(a,
		fmt.Errorf("it is the seed %q: delete managedseed %s first", managed.Name, nameOf(managed)))
}

func (m *managedSeed) managedSeeds(ctx context.Context) ([]*seedmanagementv1alpha1.ManagedSeed, error) {
	return list[*seedmanagementv1alpha1.ManagedSeed](ctx, m.Reader, seedmanagementv1alpha1.Resource("managedseeds"),
		gardencorev1beta1.GardenNamespace, fields.Everything())
}

// managedSeedOf returns the managed seed that is made of a shoot of the garden; nil if there is none.
func (m *managedSeed) managedSeedOf(ctx context.Context, shoot string) (*seedmanagementv1alpha1.ManagedSeed, error) {
	managed, err := m.managedSeeds(ctx)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(managed, func(m *seedmanagementv1alpha1.ManagedSeed) bool {
		return m.Spec.Shoot != nil && m.Spec.Shoot.Name == shoot
	}); i >= 0 {
		return managed[i], nil
	}
	return nil, nil
}

// validateShootOfManagedSeed refuses changes under which the control planes in the shoot would stop.
func validateShootOfManagedSeed(shoot *gardencorev1beta1.Shoot,
	managed *seedmanagementv1alpha1.ManagedSeed) field.ErrorList {
	if isHibernated(shoot) {
		return field.ErrorList{
			field.Forbidden(field.NewPath("spec", "hibernation", "enabled"),
				fmt.Sprintf("the shoot is the seed %q, which cannot sleep", managed.Name)),
		}
	}
	if shoot.Spec.Hibernation != nil && len(shoot.Spec.Hibernation.Schedules) > 0 {
		return field.ErrorList{
			field.Forbidden(field.NewPath("spec", "hibernation", "schedules"),
				fmt.Sprintf("the shoot is the seed %q, which cannot sleep", managed.Name)),
		}
	}
	return nil
}

func (m *managedSeed) validateNew(ctx context.Context,
	managed *seedmanagementv1alpha1.ManagedSeed) (field.ErrorList, error) {
	shoot, err := get[*gardencorev1beta1.Shoot](ctx, m.Reader, gardencorev1beta1.Resource("shoots"), managed.Namespace,
		managed.Spec.Shoot.Name)
	if err != nil && !isMissing(err) {
		return nil, err
	}
	others, err := m.managedSeeds(ctx)
	if err != nil {
		return nil, err
	}
	return append(validateShootForSeed(managed, shoot, others), validateSeedConfig(managed, shoot)...), nil
}

// validateShootForSeed checks whether a seed can be made of a shoot (nil if there is none of the name).
func validateShootForSeed(managed *seedmanagementv1alpha1.ManagedSeed, shoot *gardencorev1beta1.Shoot,
	others []*seedmanagementv1alpha1.ManagedSeed) field.ErrorList {
	path, name := field.NewPath("spec", "shoot", "name"), managed.Spec.Shoot.Name
	if shoot == nil {
		return field.ErrorList{field.NotFound(path, managed.Namespace+"/"+name)}
	}
	for _, other := range others {
		if other.Name != managed.Name && other.Spec.Shoot != nil && other.Spec.Shoot.Name == name {
			return field.ErrorList{field.Invalid(path, name, fmt.Sprintf("is already the seed %q", other.Name))}
		}
	}
	for _, unfit := range []struct {
		is  bool
		why string
	}{
		{shoot.DeletionTimestamp != nil, "the shoot is being deleted"},
		{
			gardencorev1beta1.IsWorkerless(shoot),
			"a seed needs machines for control planes, and the shoot has no workers",
		},
		{
			isHibernated(shoot) || shoot.Spec.Hibernation != nil && len(shoot.Spec.Hibernation.Schedules) > 0,
			"a seed cannot sleep: remove the shoot's spec.hibernation first",
		},
		{
			shoot.Spec.Addons != nil && shoot.Spec.Addons.NginxIngress != nil && shoot.Spec.Addons.NginxIngress.Enabled,
			"a seed brings its own ingress: disable the shoot's spec.addons.nginxIngress first",
		},
	} {
		if unfit.is {
			return field.ErrorList{field.Invalid(path, name, unfit.why)}
		}
	}
	return nil
}

// validateSeedConfig holds what the configuration says about the cluster against the shoot, which knows better.
func validateSeedConfig(managed *seedmanagementv1alpha1.ManagedSeed, shoot *gardencorev1beta1.Shoot) field.ErrorList {
	template, err := seedmanagementv1alpha1.SeedTemplateOf(managed.Spec.Gardenlet.Config)
	if err != nil || template == nil || shoot == nil {
		return nil // static validation tells what is wrong with it
	}
	path := field.NewPath("spec", "gardenlet", "config", "seedConfig", "spec")
	networking := ptr.Deref(shoot.Spec.Networking, gardencorev1beta1.Networking{})
	seed := template.Spec
	var errs field.ErrorList
	for _, same := range []struct {
		path       *field.Path
		seed, want string
	}{
		{path.Child("provider", "type"), seed.Provider.Type, shoot.Spec.Provider.Type},
		{path.Child("networks", "nodes"), ptr.Deref(seed.Networks.Nodes, ""), ptr.Deref(networking.Nodes, "")},
		{path.Child("networks", "pods"), seed.Networks.Pods, ptr.Deref(networking.Pods, "")},
		{path.Child("networks", "services"), seed.Networks.Services, ptr.Deref(networking.Services, "")},
	} {
		if same.seed != "" && same.want != "" && same.seed != same.want {
			errs = append(errs, field.Invalid(same.path, same.seed,
				fmt.Sprintf("shoot %s has %s: leave the field out", nameOf(shoot), same.want)))
		}
	}
	return errs
}
