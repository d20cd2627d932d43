package admission

import (
	"context"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

// ShootValidatorName is the name of the plugin that checks a shoot against its project, cloud profile, credentials and
// seed.
const ShootValidatorName = "ShootValidator"

// shootValidator refuses shoots that could never be created as they are.
type shootValidator struct {
	*admission.Handler
	dependent
	now func() time.Time
}

var _ admission.ValidationInterface = &shootValidator{}

func newShootValidator() *shootValidator {
	return &shootValidator{Handler: admission.NewHandler(admission.Create, admission.Update), now: time.Now}
}

// Validate implements admission.ValidationInterface.
func (s *shootValidator) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	shoot, ok := a.GetObject().(*corev1beta1.Shoot)
	if !ok || (a.GetSubresource() != "" && a.GetSubresource() != "binding") {
		return nil
	}
	old, _ := a.GetOldObject().(*corev1beta1.Shoot)
	if shoot.DeletionTimestamp != nil || (old != nil && apiequality.Semantic.DeepEqual(shoot.Spec, old.Spec)) {
		return nil
	}
	if old == nil {
		if err := s.validateProject(ctx, a, shoot); err != nil {
			return err
		}
	}
	errs, err := s.validateReferences(ctx, shoot, old)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(corev1beta1.Kind("Shoot"), shoot.Name, errs)
	}
	return nil
}

func (s *shootValidator) validateReferences(ctx context.Context, shoot, old *corev1beta1.Shoot) (field.ErrorList, error) {
	checks := []func(context.Context, *corev1beta1.Shoot, *corev1beta1.Shoot) (field.ErrorList, error){
		s.validateProfile, s.validateCredentials, s.validateSeed,
	}
	var errs field.ErrorList
	for _, check := range checks {
		found, err := check(ctx, shoot, old)
		if err != nil {
			return nil, err
		}
		errs = append(errs, found...)
	}
	return errs, nil
}

// validateProject makes sure that the namespace belongs to a project that still takes shoots.
func (s *shootValidator) validateProject(ctx context.Context, a admission.Attributes, shoot *corev1beta1.Shoot) error {
	project, err := projectOf(ctx, s.Reader, shoot.Namespace)
	switch {
	case err != nil:
		return apierrors.NewInternalError(err)
	case project == nil:
		return admission.NewForbidden(a, fmt.Errorf("namespace %q belongs to no project: create a Project with spec.namespace %q first", shoot.Namespace, shoot.Namespace))
	case project.DeletionTimestamp != nil:
		return admission.NewForbidden(a, fmt.Errorf("project %q is being deleted", project.Name))
	case len(project.Name)+len(shoot.Name) > corev1beta1.MaxShootNamesLength:
		return apierrors.NewInvalid(corev1beta1.Kind("Shoot"), shoot.Name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "name"), shoot.Name, fmt.Sprintf("must have at most %d characters: it shares %d with the name of project %q", corev1beta1.MaxShootNamesLength-len(project.Name), corev1beta1.MaxShootNamesLength, project.Name)),
		})
	}
	return nil
}

// validateProfile checks the shoot against its cloud profile.
func (s *shootValidator) validateProfile(ctx context.Context, shoot, old *corev1beta1.Shoot) (field.ErrorList, error) {
	path := field.NewPath("spec", "cloudProfile")
	if shoot.Spec.CloudProfile == nil {
		return field.ErrorList{field.Required(path, "names the cloud profile to take regions, versions and machines from")}, nil
	}
	profile, err := profileOf(ctx, s.Reader, shoot)
	if isMissing(err) {
		return field.ErrorList{field.NotFound(path.Child("name"), shoot.Spec.CloudProfile.Name)}, nil
	}
	if err != nil {
		return nil, err
	}
	return corev1beta1.ValidateShootAgainstCloudProfile(shoot, old, profile, s.now()), nil
}

// validateCredentials makes sure that the binding exists and is for the shoot's provider.
func (s *shootValidator) validateCredentials(ctx context.Context, shoot, old *corev1beta1.Shoot) (field.ErrorList, error) {
	if old != nil && ptr.Equal(old.Spec.SecretBindingName, shoot.Spec.SecretBindingName) && ptr.Equal(old.Spec.CredentialsBindingName, shoot.Spec.CredentialsBindingName) {
		return nil, nil
	}
	var errs field.ErrorList
	if name := shoot.Spec.SecretBindingName; name != nil {
		path := field.NewPath("spec", "secretBindingName")
		binding, err := get[*corev1beta1.SecretBinding](ctx, s.Reader, corev1beta1.Resource("secretbindings"), shoot.Namespace, *name)
		if err != nil && !isMissing(err) {
			return nil, err
		}
		errs = append(errs, validateBinding(path, *name, err == nil, shoot.Spec.Provider.Type, secretBindingType(binding))...)
	}
	if name := shoot.Spec.CredentialsBindingName; name != nil {
		path := field.NewPath("spec", "credentialsBindingName")
		binding, err := get[*securityv1alpha1.CredentialsBinding](ctx, s.Reader, securityv1alpha1.Resource("credentialsbindings"), shoot.Namespace, *name)
		if err != nil && !isMissing(err) {
			return nil, err
		}
		errs = append(errs, validateBinding(path, *name, err == nil, shoot.Spec.Provider.Type, credentialsBindingType(binding))...)
	}
	return errs, nil
}

func secretBindingType(binding *corev1beta1.SecretBinding) string {
	if binding == nil || binding.Provider == nil {
		return ""
	}
	return binding.Provider.Type
}

func credentialsBindingType(binding *securityv1alpha1.CredentialsBinding) string {
	if binding == nil {
		return ""
	}
	return binding.Provider.Type
}

// validateSeed checks an assignment to a seed, which is made on creation or through the binding subresource.
func (s *shootValidator) validateSeed(ctx context.Context, shoot, old *corev1beta1.Shoot) (field.ErrorList, error) {
	if shoot.Spec.SeedName == nil || (old != nil && ptr.Equal(old.Spec.SeedName, shoot.Spec.SeedName)) {
		return nil, nil
	}
	path := field.NewPath("spec", "seedName")
	seed, err := get[*corev1beta1.Seed](ctx, s.Reader, corev1beta1.Resource("seeds"), "", *shoot.Spec.SeedName)
	if isMissing(err) {
		return field.ErrorList{field.NotFound(path, *shoot.Spec.SeedName)}, nil
	}
	if err != nil {
		return nil, err
	}
	return validateSeedFor(shoot, seed, path), nil
}
