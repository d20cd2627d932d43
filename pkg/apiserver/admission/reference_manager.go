package admission

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/few"
)

// ReferenceManagerName is the name of the plugin that keeps references between objects whole.
const ReferenceManagerName = "ResourceReferenceManager"

// usersShown bounds how many users of an object a message lists.
const usersShown = 5

// referenceManager refuses to delete what is in use or to take from cloud profiles what shoots use, and to refer to
// what does not exist or what the user may not read.
type referenceManager struct {
	*admission.Handler
	dependent
	// users finds who uses an object, by the object's resource.
	users map[schema.GroupResource]usersOf
}

var _ admission.ValidationInterface = &referenceManager{}

func newReferenceManager() *referenceManager {
	r := &referenceManager{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete)}
	r.users = r.usersByResource()
	return r
}

// Validate implements admission.ValidationInterface.
func (r *referenceManager) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	switch {
	case a.GetOperation() == admission.Delete && a.GetSubresource() == "":
		return r.validateDelete(ctx, a)
	case a.GetOperation() == admission.Delete:
		return nil
	}
	if shoot, old, ok := changedShoot(a); ok {
		return r.validateReferences(ctx, a, addedReferences(referencesOfShoot(shoot), old))
	}
	if errs, err := r.validateRemovals(ctx, a); err != nil || len(errs) > 0 {
		return respond(a, errs, err)
	}
	if a.GetOperation() == admission.Create && a.GetSubresource() == "" {
		return r.validateReferences(ctx, a, referencesOf(a.GetObject()))
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
	return admission.NewForbidden(a, fmt.Errorf("it is still used by %s: delete or change these first",
		summary(users)))
}

// summary names some of the users of an object.
func summary(users []string) string { return few.Joined(users, usersShown, ", ") }

// reference is what a field of an object refers to.
type reference struct {
	path            *field.Path
	kind            schema.GroupVersionKind
	namespace, name string
	// readable tells that who makes the reference must be allowed to read the object, since it gives access to it.
	readable bool
}

// key tells references apart.
func (r reference) key() string {
	return r.kind.GroupKind().String() + " " + r.namespace + "/" + r.name
}

// referencesOf returns what an object other than a shoot refers to.
func referencesOf(object any) []reference {
	switch object := object.(type) {
	case *gardencorev1beta1.SecretBinding:
		secret := reference{
			field.NewPath("secretRef"), secretKind, object.SecretRef.Namespace, object.SecretRef.Name, true,
		}
		return append([]reference{secret}, referencesToQuotas(object.Quotas)...)
	case *securityv1alpha1.CredentialsBinding:
		to := object.CredentialsRef
		credentials := reference{
			field.NewPath("credentialsRef"), schema.FromAPIVersionAndKind(to.APIVersion, to.Kind), to.Namespace,
			to.Name, true,
		}
		return append([]reference{credentials}, referencesToQuotas(object.Quotas)...)
	case *gardencorev1beta1.NamespacedCloudProfile:
		return []reference{
			{
				field.NewPath("spec", "parent", "name"), gardencorev1beta1.SchemeGroupVersion.WithKind("CloudProfile"),
				"", object.Spec.Parent.Name, false,
			},
		}
	}
	return nil
}

func referencesToQuotas(quotas []corev1.ObjectReference) []reference {
	var references []reference
	for i, quota := range quotas {
		references = append(references,
			reference{
				field.NewPath("quotas").Index(i), gardencorev1beta1.SchemeGroupVersion.WithKind("Quota"),
				quota.Namespace, quota.Name, true,
			})
	}
	return references
}

// validateReferences makes sure that what an object refers to exists, and that a reference does not give its author
// more than the author may read.
func (r *referenceManager) validateReferences(ctx context.Context, a admission.Attributes,
	references []reference) error {
	var errs field.ErrorList
	for _, to := range references {
		resource, known := referableKinds[to.kind.GroupKind()]
		if !known {
			errs = append(errs, field.Invalid(to.path, to.kind.String(),
				"cannot be referred to; what can be is "+strings.Join(referableKindNames(), ", ")))
			continue
		}
		if problem := to.malformed(); problem != "" {
			errs = append(errs, field.Invalid(to.path, to.fullName(), problem))
			continue
		}
		read := permission{
			verb: "get", group: to.kind.Group, version: to.kind.Version, resource: resource, namespace: to.namespace,
			name: to.name,
		}
		if to.readable && !r.may(ctx, a.GetUserInfo(), read) {
			return admission.NewForbidden(a,
				fmt.Errorf("%s: user %q may not get %s %s", to.path, a.GetUserInfo().GetName(),
					strings.ToLower(to.kind.Kind), to.fullName()))
		}
		exists, err := r.exists(ctx, to, resource)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		if !exists {
			errs = append(errs, field.NotFound(to.path, to.fullName()))
		}
	}
	return invalid(a, errs)
}

// malformed tells why no object can be called so: a name that is a path might lead elsewhere than to what the user is
// asked about.
func (r reference) malformed() string {
	for _, part := range []string{r.namespace, r.name} {
		if problems := path.IsValidPathSegmentName(part); len(problems) > 0 {
			return "is not the name of an object: " + strings.Join(problems, ", ")
		}
	}
	return ""
}

func (r reference) fullName() string {
	if r.namespace == "" {
		return r.name
	}
	return r.namespace + "/" + r.name
}

func (r *referenceManager) exists(ctx context.Context, to reference, resource string) (bool, error) {
	err := r.read(ctx, to, resource)
	if isMissing(err) {
		return false, nil
	}
	return err == nil, err
}

func (r *referenceManager) read(ctx context.Context, to reference, resource string) (err error) {
	switch to.kind.GroupKind() {
	case secretKind.GroupKind():
		_, err = r.Secret(ctx, to.namespace, to.name)
	case configMapKind.GroupKind():
		_, err = r.ConfigMap(ctx, to.namespace, to.name)
	default:
		_, err = r.Reader.Get(ctx, schema.GroupResource{Group: to.kind.Group, Resource: resource}, to.namespace,
			to.name)
	}
	return err
}
