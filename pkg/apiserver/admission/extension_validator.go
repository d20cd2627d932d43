package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/extensionuse"
)

// ExtensionValidatorName is the name of the plugin that checks that extensions are registered.
const ExtensionValidatorName = "ExtensionValidator"

// extensionValidator refuses shoots that ask for extensions that nobody has registered: their reconciliation would wait
// for ever. Seeds are only warned about, because seeds and extensions may be set up in any order.
type extensionValidator struct {
	*admission.Handler
	dependent
}

var _ admission.ValidationInterface = &extensionValidator{}

func newExtensionValidator() *extensionValidator {
	return &extensionValidator{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Validate implements admission.ValidationInterface.
func (e *extensionValidator) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if shoot, old, ok := changedShoot(a); ok && a.GetSubresource() == "" {
		offered, err := e.offered(ctx)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		return invalid(a, validateExtensions(shoot, old, offered))
	}
	if seed, old, ok := written[*gardencorev1beta1.Seed](a); ok &&
		(old == nil || !apiequality.Semantic.DeepEqual(seed.Spec, old.Spec)) {
		offered, err := e.offered(ctx)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		uses := extensionuse.OfSeed(seed)
		for _, err := range unregistered(uses, offered) {
			warning.AddWarning(ctx, "", fmt.Sprintf("%s; the seed waits until it is registered", err))
		}
		return invalid(a, incompatible(uses, gardencorev1beta1.ClusterTypeSeed, offered))
	}
	return nil
}

func (e *extensionValidator) offered(
	ctx context.Context) (offers, error) {
	registrations, err := list[*gardencorev1beta1.ControllerRegistration](ctx, e.Reader,
		gardencorev1beta1.Resource("controllerregistrations"), "", fields.Everything())
	return registered(registrations), err
}

// validateExtensions checks what a shoot newly asks for. What the old shoot (nil on creation) asks for stays allowed.
func validateExtensions(shoot, old *gardencorev1beta1.Shoot,
	offered offers) field.ErrorList {
	known := map[extensionuse.KindType]bool{}
	if old != nil {
		for _, use := range extensionuse.OfShoot(old) {
			known[use.KindType] = true
		}
	}
	var added []extensionuse.Use
	for _, use := range extensionuse.OfShoot(shoot) {
		if !known[use.KindType] {
			added = append(added, use)
		}
	}
	errs := append(unregistered(added, offered), incompatible(added, gardencorev1beta1.ClusterTypeShoot, offered)...)
	if gardencorev1beta1.IsWorkerless(shoot) {
		errs = append(errs, needWorkers(added, offered)...)
	}
	return errs
}

// unregistered reports what nobody offers, each field once.
func unregistered(uses []extensionuse.Use,
	offered offers) field.ErrorList {
	var errs field.ErrorList
	reported := map[string]bool{}
	for _, use := range uses {
		if _, ok := offered[use.KindType]; ok || reported[use.Path.String()] {
			continue
		}
		reported[use.Path.String()] = true
		types := "no type of it is"
		if all := typesOf(offered, use.Kind); len(all) > 0 {
			types = "registered are " + strings.Join(all, ", ")
		}
		errs = append(errs, field.Invalid(use.Path, use.Type,
			fmt.Sprintf("no ControllerRegistration offers %s of this type; %s", use.Kind, types)))
	}
	return errs
}

// incompatible reports extensions that are not for this type of cluster.
func incompatible(uses []extensionuse.Use, cluster gardencorev1beta1.ClusterType,
	offered offers) field.ErrorList {
	var errs field.ErrorList
	for _, use := range uses {
		resource, ok := offered[use.KindType]
		if ok && use.Kind == extensionsv1alpha1.ExtensionResource &&
			!slices.Contains(resource.CompatibleClusters(), cluster) {
			errs = append(errs, field.Forbidden(use.Path,
				fmt.Sprintf("extension %q is not for a %s: the clusterCompatibility of its ControllerRegistration "+
					"is %v",
					use.Type, cluster, resource.CompatibleClusters())))
		}
	}
	return errs
}

func needWorkers(uses []extensionuse.Use,
	offered offers) field.ErrorList {
	var errs field.ErrorList
	for _, use := range uses {
		resource, ok := offered[use.KindType]
		if ok && use.Kind == extensionsv1alpha1.ExtensionResource && !ptr.Deref(resource.WorkerlessSupported, false) {
			errs = append(errs, field.Forbidden(use.Path,
				fmt.Sprintf("extension %q needs workers: its ControllerRegistration does not say workerlessSupported",
					use.Type)))
		}
	}
	return errs
}
