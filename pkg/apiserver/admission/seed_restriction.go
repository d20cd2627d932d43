package admission

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apiserver/seedauthorizer"
)

// SeedRestrictionName is the name of the plugin that keeps gardenlets, and the extensions of their seeds, to what
// belongs to their seed.
const SeedRestrictionName = "SeedRestriction"

// unrestrictedSubresources change no object; the seed authorizer has decided about them.
var unrestrictedSubresources = sets.New("adminkubeconfig", "viewerkubeconfig")

// seedRestriction looks into what a gardenlet writes, where the seed authorizer sees names only: an object must belong
// to the seed before and after, and what others decide must stay.
type seedRestriction struct {
	*admission.Handler
	dependent
}

var _ admission.ValidationInterface = &seedRestriction{}

func newSeedRestriction() *seedRestriction {
	return &seedRestriction{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete)}
}

// Validate implements admission.ValidationInterface.
func (s *seedRestriction) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	identity, isSeed := seedauthorizer.IdentityOf(a.GetUserInfo())
	if !isSeed || unrestrictedSubresources.Has(a.GetSubresource()) {
		return nil
	}
	refuse := s.refuse
	if identity.Extension && a.GetResource().GroupResource() == gardencorev1beta1.Resource("shoots") {
		refuse = s.refuseGrowth
	}
	reason, err := refuse(ctx, identity.Seed, a)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if reason == "" {
		reason = changesMetadata(identity, a)
	}
	if reason != "" {
		return admission.NewForbidden(a, fmt.Errorf("%s may not do this: %s", identity, reason))
	}
	return nil
}

// refuse returns why a seed may not write; empty when it may.
func (s *seedRestriction) refuse(ctx context.Context, seed string, a admission.Attributes) (string, error) {
	for _, object := range []runtime.Object{a.GetOldObject(), a.GetObject()} {
		if object == nil {
			continue
		}
		reason, err := s.notOf(ctx, seed, object, a)
		if reason != "" || err != nil {
			return reason, err
		}
	}
	return s.changesForeign(ctx, seed, a)
}

// notOf returns why an object does not belong to a seed; empty when it does.
func (s *seedRestriction) notOf(ctx context.Context, seed string, object runtime.Object,
	a admission.Attributes) (string, error) {
	switch object := object.(type) {
	case *gardencorev1beta1.Seed:
		if a.GetOperation() == admission.Delete {
			return s.notOfManagedSeed(ctx, seed, object.Name)
		}
		return unlessOneOf("metadata.name", seed, object.Name), nil
	case *gardencorev1beta1.BackupBucket:
		return unlessOneOf("spec.seedName", seed, ptr.Deref(object.Spec.SeedName, "")), nil
	case *gardencorev1beta1.BackupEntry:
		return unlessOneOf("spec.seedName", seed, ptr.Deref(object.Spec.SeedName, ""),
			ptr.Deref(object.Status.SeedName, "")), nil
	case *gardencorev1beta1.ControllerInstallation:
		return unlessOneOf("spec.seedRef.name", seed, ptr.Deref(object.Spec.SeedRef, corev1.ObjectReference{}).Name),
			nil
	case *gardencorev1beta1.Shoot:
		return unlessOneOf("spec.seedName", seed, ptr.Deref(object.Spec.SeedName, ""),
			ptr.Deref(object.Status.SeedName, "")), nil
	case *operationsv1alpha1.Bastion:
		return unlessOneOf("spec.seedName", seed, ptr.Deref(object.Spec.SeedName, "")), nil
	case *seedmanagementv1alpha1.Gardenlet:
		return unlessOneOf("metadata.name", seed, object.Name), nil
	case *seedmanagementv1alpha1.ManagedSeed:
		return s.notOfShoot(ctx, seed, a.GetNamespace(),
			ptr.Deref(object.Spec.Shoot, seedmanagementv1alpha1.Shoot{}).Name)
	case *gardencorev1beta1.ShootState:
		return s.notOfShoot(ctx, seed, a.GetNamespace(), object.Name)
	case *gardencorev1beta1.InternalSecret:
		if reason := notShootSecret(object); reason != "" {
			return reason, nil
		}
		shoot, _, _ := strings.Cut(object.Name, ".")
		return s.notOfShoot(ctx, seed, a.GetNamespace(), shoot)
	case *securityv1alpha1.TokenRequest:
		return s.notForShoot(ctx, seed, object.Spec.ContextObject)
	}
	return fmt.Sprintf("%s are not written by seeds", a.GetResource().GroupResource()), nil
}

// notOfShoot returns why an object that is named after a shoot does not belong to a seed.
func (s *seedRestriction) notOfShoot(ctx context.Context, seed, namespace, name string) (string, error) {
	shoot, err := get[*gardencorev1beta1.Shoot](ctx, s.Reader, gardencorev1beta1.Resource("shoots"), namespace, name)
	if isMissing(err) {
		return fmt.Sprintf("there is no shoot %s/%s", namespace, name), nil
	}
	if err != nil {
		return "", err
	}
	return unlessOneOf(fmt.Sprintf("spec.seedName of shoot %s/%s", namespace, name), seed,
		ptr.Deref(shoot.Spec.SeedName, ""), ptr.Deref(shoot.Status.SeedName, "")), nil
}

// notForShoot returns why a token of a workload identity is not requested for the sake of a shoot of a seed.
func (s *seedRestriction) notForShoot(ctx context.Context, seed string,
	object *securityv1alpha1.ContextObject) (string, error) {
	if object == nil || object.Kind != "Shoot" || object.APIVersion != gardencorev1beta1.SchemeGroupVersion.String() {
		return "spec.contextObject must be the Shoot for whose sake the token is requested", nil
	}
	reason, err := s.notOfShoot(ctx, seed, ptr.Deref(object.Namespace, ""), object.Name)
	if reason != "" {
		reason = "spec.contextObject: " + reason
	}
	return reason, err
}

// notOfManagedSeed returns why a Seed is not one that a seed has made of a shoot.
func (s *seedRestriction) notOfManagedSeed(ctx context.Context, seed, name string) (string, error) {
	managedSeed, err := get[*seedmanagementv1alpha1.ManagedSeed](ctx, s.Reader,
		seedmanagementv1alpha1.Resource("managedseeds"), gardencorev1beta1.GardenNamespace, name)
	if isMissing(err) {
		return "only Seeds of managed seeds are deleted by seeds", nil
	}
	if err != nil {
		return "", err
	}
	return s.notOfShoot(ctx, seed, managedSeed.Namespace,
		ptr.Deref(managedSeed.Spec.Shoot, seedmanagementv1alpha1.Shoot{}).Name)
}

func unlessOneOf(path, seed string, found ...string) string {
	for _, name := range found {
		if name == seed {
			return ""
		}
	}
	return fmt.Sprintf("%s is %q, not %q", path, found[0], seed)
}

// madeByOthers are created and deleted by others.
var madeByOthers = sets.New(
	gardencorev1beta1.Resource("shoots"), gardencorev1beta1.Resource("controllerinstallations"),
	gardencorev1beta1.Resource("backupbuckets"), operationsv1alpha1.Resource("bastions"),
	seedmanagementv1alpha1.Resource("managedseeds"), seedmanagementv1alpha1.Resource("gardenlets"),
)

// changesForeign returns what others decide about and the write changes; empty when there is nothing.
func (s *seedRestriction) changesForeign(ctx context.Context, seed string, a admission.Attributes) (string, error) {
	if a.GetOperation() != admission.Update {
		if created, ok := a.GetObject().(*gardencorev1beta1.Seed); ok && a.GetOperation() == admission.Create {
			return s.registersOtherwise(ctx, created)
		}
		if entry, ok := a.GetObject().(*gardencorev1beta1.BackupEntry); ok && a.GetOperation() == admission.Create {
			return s.makesOtherEntry(ctx, seed, entry)
		}
		if resource := a.GetResource().GroupResource(); madeByOthers.Has(resource) {
			return fmt.Sprintf("%s are not created or deleted by seeds", resource), nil
		}
		return "", nil
	}
	object, old := a.GetObject(), a.GetOldObject()
	if own, ok := object.(*gardencorev1beta1.Seed); ok {
		return s.changesOwnSeed(ctx, own, old.(*gardencorev1beta1.Seed), a.GetSubresource())
	}
	before, found := decidedByOthers(old)
	if !found {
		return "", nil
	}
	if after, _ := decidedByOthers(object); !apiequality.Semantic.DeepEqual(before, after) {
		return "spec is not changed by seeds: only the status is, and finalizers", nil
	}
	if changed := changedMarks(object.(metav1.Object), old.(metav1.Object), a.GetSubresource()); len(changed) > 0 {
		return strings.Join(changed, ", ") +
			": not changed by seeds, which take away the operations that they have carried out, and nothing else", nil
	}
	return refuseForgery(seed, object, old), nil
}

// decidedByOthers returns the specification of kinds whose specification others decide about.
func decidedByOthers(object runtime.Object) (spec any, found bool) {
	switch object := object.(type) {
	case *gardencorev1beta1.Shoot:
		return object.Spec, true
	case *gardencorev1beta1.ControllerInstallation:
		return object.Spec, true
	case *gardencorev1beta1.BackupBucket:
		return object.Spec, true
	case *gardencorev1beta1.BackupEntry:
		return object.Spec, true
	case *operationsv1alpha1.Bastion:
		return object.Spec, true
	case *seedmanagementv1alpha1.ManagedSeed:
		return object.Spec, true
	case *seedmanagementv1alpha1.Gardenlet:
		return object.Spec, true
	}
	return nil, false
}
