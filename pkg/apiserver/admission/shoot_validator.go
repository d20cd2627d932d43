package admission

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
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
	return &shootValidator{
		Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete), now: time.Now,
	}
}

// Validate implements admission.ValidationInterface.
func (s *shootValidator) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() == admission.Delete {
		return validateDeletionOfShoot(a)
	}
	if a.GetSubresource() == statusSubresource {
		return s.validateStatusOfShoot(ctx, a)
	}
	if err := s.checkRestore(ctx, a); err != nil {
		return err
	}
	shoot, old, ok := changedShoot(a)
	if !ok {
		return nil
	}
	if old == nil {
		if err := s.validateProject(ctx, a, shoot); err != nil {
			return err
		}
	}
	if err := s.checkAssigner(ctx, a, shoot, old); err != nil {
		return err
	}
	if err := s.checkCredentialsReader(ctx, a, shoot, old); err != nil {
		return err
	}
	errs, err := s.validateReferences(ctx, shoot, old)
	return respond(a, errs, err)
}

// validateDeletionOfShoot refuses to delete a shoot whose control plane is between two seeds.
func validateDeletionOfShoot(a admission.Attributes) error {
	shoot, ok := a.GetOldObject().(*gardencorev1beta1.Shoot)
	if !ok || a.GetSubresource() != "" || shoot.DeletionTimestamp != nil || !isMoving(shoot.Status.LastOperation) {
		return nil
	}
	return admission.NewForbidden(a,
		fmt.Errorf("its control plane moves to another seed (%s %s): wait until it has arrived",
			shoot.Status.LastOperation.Type, shoot.Status.LastOperation.State))
}

func isMoving(operation *gardencorev1beta1.LastOperation) bool {
	if operation == nil {
		return false
	}
	return operation.Type == gardencorev1beta1.LastOperationTypeMigrate ||
		operation.Type == gardencorev1beta1.LastOperationTypeLiveMigrate ||
		operation.Type == gardencorev1beta1.LastOperationTypeRestore &&
			operation.State != gardencorev1beta1.LastOperationStateSucceeded
}

// checkAssigner makes sure that who chooses a seed may assign seeds. The binding subresource has its own permission.
func (s *shootValidator) checkAssigner(ctx context.Context, a admission.Attributes,
	shoot, old *gardencorev1beta1.Shoot) error {
	if a.GetSubresource() != "" || shoot.Spec.SeedName == nil ||
		(old != nil && ptr.Equal(old.Spec.SeedName, shoot.Spec.SeedName)) {
		return nil
	}
	assign := permissionOn(a, "update")
	assign.subresource = bindingSubresource
	if s.may(ctx, a.GetUserInfo(), assign) {
		return nil
	}
	return admission.NewForbidden(a,
		fmt.Errorf("spec.seedName: user %q may not assign seeds (update %s): leave the field out, the scheduler "+
			"chooses a seed",
			a.GetUserInfo().GetName(), assign.resourcePath()))
}

func (s *shootValidator) validateReferences(ctx context.Context,
	shoot, old *gardencorev1beta1.Shoot) (field.ErrorList, error) {
	checks := []func(context.Context, *gardencorev1beta1.Shoot, *gardencorev1beta1.Shoot) (field.ErrorList, error){
		s.validateProfile, s.validateCredentials, s.validateSeed, s.validateMove, s.validateAPIServerFiles,
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
func (s *shootValidator) validateProject(ctx context.Context, a admission.Attributes,
	shoot *gardencorev1beta1.Shoot) error {
	project, err := projectOf(ctx, s.Reader, shoot.Namespace)
	switch {
	case err != nil:
		return apierrors.NewInternalError(err)
	case project == nil:
		return admission.NewForbidden(a,
			fmt.Errorf("namespace %q belongs to no project: create a Project with spec.namespace %q first",
				shoot.Namespace, shoot.Namespace))
	case project.DeletionTimestamp != nil:
		return admission.NewForbidden(a, fmt.Errorf("project %q is being deleted", project.Name))
	case len(project.Name)+len(shoot.Name) > gardencorev1beta1.MaxShootNamesLength:
		return apierrors.NewInvalid(gardencorev1beta1.Kind("Shoot"), shoot.Name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "name"), shoot.Name,
				fmt.Sprintf("must have at most %d characters: it shares %d with the name of project %q",
					gardencorev1beta1.MaxShootNamesLength-len(project.Name), gardencorev1beta1.MaxShootNamesLength,
					project.Name)),
		})
	}
	return nil
}

// validateProfile checks the shoot against its cloud profile.
func (s *shootValidator) validateProfile(ctx context.Context,
	shoot, old *gardencorev1beta1.Shoot) (field.ErrorList, error) {
	path := field.NewPath("spec", "cloudProfile")
	if shoot.Spec.CloudProfile == nil {
		return field.ErrorList{
			field.Required(path, "names the cloud profile to take regions, versions and machines from"),
		}, nil
	}
	profile, err := profileOf(ctx, s.Reader, shoot)
	if isMissing(err) {
		return field.ErrorList{field.NotFound(path.Child("name"), shoot.Spec.CloudProfile.Name)}, nil
	}
	if err != nil {
		return nil, err
	}
	for _, text := range gardencorev1beta1.ShootExpiryWarnings(shoot, profile, s.now()) {
		warning.AddWarning(ctx, "", text)
	}
	return gardencorev1beta1.ValidateShootAgainstCloudProfile(shoot, old, profile, s.now()), nil
}

// validateCredentials makes sure that the binding exists and is for the shoot's provider.
func (s *shootValidator) validateCredentials(ctx context.Context,
	shoot, old *gardencorev1beta1.Shoot) (field.ErrorList, error) {
	if old != nil && ptr.Equal(old.Spec.SecretBindingName, shoot.Spec.SecretBindingName) &&
		ptr.Equal(old.Spec.CredentialsBindingName, shoot.Spec.CredentialsBindingName) {
		return nil, nil
	}
	var errs field.ErrorList
	if name := shoot.Spec.SecretBindingName; name != nil {
		path := field.NewPath("spec", "secretBindingName")
		binding, err := get[*gardencorev1beta1.SecretBinding](ctx, s.Reader,
			gardencorev1beta1.Resource("secretbindings"), shoot.Namespace, *name)
		if err != nil && !isMissing(err) {
			return nil, err
		}
		errs = append(errs, validateBinding(path, *name, err == nil, shoot.Spec.Provider.Type,
			secretBindingType(binding))...)
	}
	if name := shoot.Spec.CredentialsBindingName; name != nil {
		path := field.NewPath("spec", "credentialsBindingName")
		binding, err := get[*securityv1alpha1.CredentialsBinding](ctx, s.Reader,
			securityv1alpha1.Resource("credentialsbindings"), shoot.Namespace, *name)
		if err != nil && !isMissing(err) {
			return nil, err
		}
		errs = append(errs, validateBinding(path, *name, err == nil, shoot.Spec.Provider.Type,
			credentialsBindingType(binding))...)
	}
	return errs, nil
}

func secretBindingType(binding *gardencorev1beta1.SecretBinding) string {
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

// boundCredentials returns what the binding of a shoot refers to; an empty reference when there is no such binding.
func (s *shootValidator) boundCredentials(ctx context.Context,
	shoot *gardencorev1beta1.Shoot) (corev1.ObjectReference, error) {
	binding, err := bindingOf(ctx, s.Reader, shoot)
	if err != nil || binding == nil {
		return corev1.ObjectReference{}, err
	}
	return binding.credentials, nil
}

// checkCredentialsReader makes sure that who changes the credentials of a shoot may read those before and those after:
// with the new ones the machines of the old ones are managed.
func (s *shootValidator) checkCredentialsReader(ctx context.Context, a admission.Attributes,
	shoot, old *gardencorev1beta1.Shoot) error {
	if old == nil || sameBinding(shoot, old) {
		return nil
	}
	before, err := s.boundCredentials(ctx, old)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	after, err := s.boundCredentials(ctx, shoot)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if old.Spec.SecretBindingName != nil && after.Name != "" && !sameCredentials(before, after) {
		return invalid(a, field.ErrorList{field.Invalid(field.NewPath("spec", "credentialsBindingName"),
			ptr.Deref(shoot.Spec.CredentialsBindingName, ""),
			fmt.Sprintf("refers to other credentials than spec.secretBindingName did (%s %s/%s): move to a binding "+
				"of the same first", before.Kind, before.Namespace, before.Name))})
	}
	for _, credentials := range []corev1.ObjectReference{before, after} {
		read, known := permissionToRead(credentials)
		if known && !s.may(ctx, a.GetUserInfo(), read) {
			return admission.NewForbidden(a,
				fmt.Errorf("spec.credentialsBindingName: user %q may not get %s %s/%s, which has to be allowed for "+
					"the credentials before and after",
					a.GetUserInfo().GetName(), read.resource, credentials.Namespace, credentials.Name))
		}
	}
	return nil
}

func sameCredentials(a, b corev1.ObjectReference) bool {
	return a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name
}

func permissionToRead(credentials corev1.ObjectReference) (permission, bool) {
	kind := schema.FromAPIVersionAndKind(credentials.APIVersion, credentials.Kind)
	resource, known := referableKinds[kind.GroupKind()]
	return permission{
		verb: "get", group: kind.Group, version: kind.Version, resource: resource, namespace: credentials.Namespace,
		name: credentials.Name,
	}, known
}
