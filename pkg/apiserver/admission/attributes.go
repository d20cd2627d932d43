package admission

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Subresources of shoots: binding assigns one to a seed.
const (
	bindingSubresource = "binding"
	statusSubresource  = "status"
)

// written returns the object of a write of a kind, and what it replaces (nil on creation). Writes of subresources and
// of other kinds are not meant.
func written[T runtime.Object](a admission.Attributes) (object, old T, ok bool) {
	object, ok = a.GetObject().(T)
	old, _ = a.GetOldObject().(T)
	return object, old, ok && a.GetSubresource() == ""
}

// changedShoot returns the shoot of a write that changes a specification, directly or through shoots/binding, and what
// it replaces (nil on creation). Shoots that are being deleted are not meant.
func changedShoot(a admission.Attributes) (shoot, old *gardencorev1beta1.Shoot, ok bool) {
	shoot, ok = a.GetObject().(*gardencorev1beta1.Shoot)
	if !ok || (a.GetSubresource() != "" && a.GetSubresource() != bindingSubresource) || shoot.DeletionTimestamp != nil {
		return nil, nil, false
	}
	old, _ = a.GetOldObject().(*gardencorev1beta1.Shoot)
	return shoot, old, old == nil || !apiequality.Semantic.DeepEqual(shoot.Spec, old.Spec)
}

// invalid answers a request with what is wrong; nil if nothing is.
func invalid(a admission.Attributes, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
}

// respond answers a request after a check that may itself have failed.
func respond(a admission.Attributes, errs field.ErrorList, err error) error {
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	return invalid(a, errs)
}

// permission is what a user may be allowed to do. A custom verb stands for a part of an object, or for a way to use it.
type permission struct {
	verb, group, version, resource, subresource, namespace, name string
}

// permissionOn is a permission on the object of a request.
func permissionOn(a admission.Attributes, verb string) permission {
	resource := a.GetResource()
	return permission{
		verb: verb, group: resource.Group, version: resource.Version, resource: resource.Resource,
		namespace: a.GetNamespace(), name: a.GetName(),
	}
}

// resourcePath names the resource as RBAC does.
func (p permission) resourcePath() string {
	if p.subresource == "" {
		return p.resource
	}
	return p.resource + "/" + p.subresource
}
