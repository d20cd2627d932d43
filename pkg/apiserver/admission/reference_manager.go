package admission

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

// ReferenceManagerName is the name of the plugin that keeps references between objects whole.
const ReferenceManagerName = "ResourceReferenceManager"

// usersShown bounds how many users of an object a message lists.
const usersShown = 5

// referenceManager refuses to delete what is in use, and to refer to secrets that do not exist or that the user may
// not read.
type referenceManager struct {
	*admission.Handler
	dependent
	// users finds who uses an object, by the object's resource.
	users map[schema.GroupResource]func(ctx context.Context, object metav1.Object) ([]string, error)
}

var _ admission.ValidationInterface = &referenceManager{}

func newReferenceManager() *referenceManager {
	r := &referenceManager{Handler: admission.NewHandler(admission.Create, admission.Delete)}
	r.users = map[schema.GroupResource]func(context.Context, metav1.Object) ([]string, error){
		corev1beta1.Resource("cloudprofiles"):            r.usersOfProfile(corev1beta1.CloudProfileReferenceKindCloudProfile),
		corev1beta1.Resource("namespacedcloudprofiles"):  r.usersOfProfile(corev1beta1.CloudProfileReferenceKindNamespacedCloudProfile),
		corev1beta1.Resource("seeds"):                    r.shootsOfSeed,
		corev1beta1.Resource("projects"):                 r.shootsOfProject,
		corev1beta1.Resource("secretbindings"):           r.shootsWhere(func(s *corev1beta1.Shoot) *string { return s.Spec.SecretBindingName }),
		securityv1alpha1.Resource("credentialsbindings"): r.shootsWhere(func(s *corev1beta1.Shoot) *string { return s.Spec.CredentialsBindingName }),
		corev1beta1.Resource("exposureclasses"):          r.shootsWhere(func(s *corev1beta1.Shoot) *string { return s.Spec.ExposureClassName }),
		corev1beta1.Resource("controllerdeployments"):    r.registrationsOf,
	}
	return r
}

// Validate implements admission.ValidationInterface.
func (r *referenceManager) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	if a.GetOperation() == admission.Delete {
		return r.validateDelete(ctx, a)
	}
	switch binding := a.GetObject().(type) {
	case *corev1beta1.SecretBinding:
		return r.validateSecret(ctx, a, field.NewPath("secretRef"), binding.SecretRef.Namespace, binding.SecretRef.Name)
	case *securityv1alpha1.CredentialsBinding:
		if reference := binding.CredentialsRef; reference.APIVersion == "v1" && reference.Kind == "Secret" {
			return r.validateSecret(ctx, a, field.NewPath("credentialsRef"), reference.Namespace, reference.Name)
		}
	}
	return nil
}

func (r *referenceManager) validateDelete(ctx context.Context, a admission.Attributes) error {
	find, ok := r.users[a.GetResource().GroupResource()]
	object, isObject := a.GetOldObject().(metav1.Object)
	if !ok || !isObject || object.GetDeletionTimestamp() != nil {
		return nil
	}
	users, err := find(ctx, object)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if len(users) == 0 {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf("it is still used by %s: delete or change these first", summary(users)))
}

func summary(users []string) string {
	if more := len(users) - usersShown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(users[:usersShown], ", "), more)
	}
	return strings.Join(users, ", ")
}

// validateSecret makes sure that a binding does not give its creator more than the creator may read.
func (r *referenceManager) validateSecret(ctx context.Context, a admission.Attributes, path *field.Path, namespace, name string) error {
	if !r.mayRead(ctx, a.GetUserInfo(), namespace, name) {
		return admission.NewForbidden(a, fmt.Errorf("%s: user %q may not get secret %s/%s", path, a.GetUserInfo().GetName(), namespace, name))
	}
	exists, err := r.SecretExists(ctx, namespace, name)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if !exists {
		return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), field.ErrorList{field.NotFound(path, namespace+"/"+name)})
	}
	return nil
}

func (r *referenceManager) mayRead(ctx context.Context, caller user.Info, namespace, name string) bool {
	decision, _, err := r.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: caller, Verb: "get", APIVersion: "v1", Resource: "secrets", Namespace: namespace, Name: name, ResourceRequest: true,
	})
	return err == nil && decision == authorizer.DecisionAllow
}

func (r *referenceManager) usersOfProfile(kind string) func(context.Context, metav1.Object) ([]string, error) {
	return func(ctx context.Context, profile metav1.Object) ([]string, error) {
		selector := fields.AndSelectors(
			fields.OneTermEqualSelector("spec.cloudProfile.name", profile.GetName()),
			fields.OneTermEqualSelector("spec.cloudProfile.kind", kind),
		)
		users, err := r.shoots(ctx, profile.GetNamespace(), selector, func(*corev1beta1.Shoot) bool { return true })
		if err != nil || kind != corev1beta1.CloudProfileReferenceKindCloudProfile {
			return users, err
		}
		children, err := list[*corev1beta1.NamespacedCloudProfile](ctx, r.Reader, corev1beta1.Resource("namespacedcloudprofiles"), "", fields.Everything())
		if err != nil {
			return nil, err
		}
		for _, child := range children {
			if child.Spec.Parent.Name == profile.GetName() {
				users = append(users, "namespacedcloudprofile "+nameOf(child))
			}
		}
		return users, nil
	}
}

func (r *referenceManager) shootsOfSeed(ctx context.Context, seed metav1.Object) ([]string, error) {
	return r.shoots(ctx, "", fields.Everything(), func(shoot *corev1beta1.Shoot) bool {
		return ptr.Deref(shoot.Spec.SeedName, "") == seed.GetName() || ptr.Deref(shoot.Status.SeedName, "") == seed.GetName()
	})
}

func (r *referenceManager) shootsOfProject(ctx context.Context, object metav1.Object) ([]string, error) {
	project, ok := object.(*corev1beta1.Project)
	if !ok || project.Spec.Namespace == nil {
		return nil, nil
	}
	return r.shoots(ctx, *project.Spec.Namespace, fields.Everything(), func(*corev1beta1.Shoot) bool { return true })
}

// shootsWhere finds the shoots that name the object in one of their fields.
func (r *referenceManager) shootsWhere(reference func(*corev1beta1.Shoot) *string) func(context.Context, metav1.Object) ([]string, error) {
	return func(ctx context.Context, object metav1.Object) ([]string, error) {
		return r.shoots(ctx, object.GetNamespace(), fields.Everything(), func(shoot *corev1beta1.Shoot) bool {
			return ptr.Deref(reference(shoot), "") == object.GetName()
		})
	}
}

func (r *referenceManager) shoots(ctx context.Context, namespace string, selector fields.Selector, uses func(*corev1beta1.Shoot) bool) ([]string, error) {
	shoots, err := list[*corev1beta1.Shoot](ctx, r.Reader, corev1beta1.Resource("shoots"), namespace, selector)
	if err != nil {
		return nil, err
	}
	var users []string
	for _, shoot := range shoots {
		if uses(shoot) {
			users = append(users, "shoot "+nameOf(shoot))
		}
	}
	return users, nil
}

func (r *referenceManager) registrationsOf(ctx context.Context, deployment metav1.Object) ([]string, error) {
	registrations, err := list[*corev1beta1.ControllerRegistration](ctx, r.Reader, corev1beta1.Resource("controllerregistrations"), "", fields.Everything())
	if err != nil {
		return nil, err
	}
	var users []string
	for _, registration := range registrations {
		if registration.Spec.Deployment == nil || registration.DeletionTimestamp != nil {
			continue
		}
		for _, reference := range registration.Spec.Deployment.DeploymentRefs {
			if reference.Name == deployment.GetName() {
				users = append(users, "controllerregistration "+registration.Name)
			}
		}
	}
	return users, nil
}
