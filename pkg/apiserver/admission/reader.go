// Package admission decides about writes that need to look beyond the object itself: at the user, at the cloud profile
// a shoot refers to, at who still uses an object that is to be deleted.
//
// Each plugin is small and registered by name (see Register). Plugins read other objects through a Reader straight from
// the server's own storage, so there are no informers to wait for: single objects come from its watch cache, which may
// be milliseconds old, lists are as etcd has them.
package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Reader reads what the server has stored.
type Reader interface {
	// Get returns the object, or an API error with reason NotFound. Namespace is empty for objects of the garden.
	Get(ctx context.Context, resource schema.GroupResource, namespace, name string) (runtime.Object, error)
	// List returns a list of the selected objects. An empty namespace selects all namespaces.
	List(ctx context.Context, resource schema.GroupResource, namespace string,
		selector fields.Selector) (runtime.Object, error)
}

// Dependencies is what plugins may ask for.
type Dependencies struct {
	Reader     Reader
	Authorizer authorizer.Authorizer
	// Reservations lets checks of limits know of requests that run at the same time.
	Reservations Reservations
	// Secret and ConfigMap read from the garden's kube-apiserver. An object that is not there is an API error with
	// reason NotFound.
	Secret    func(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	ConfigMap func(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	// InsecureKubeconfigs says that kubeconfigs of webhooks may name a proxy and turn off verification.
	InsecureKubeconfigs bool
}

// may tells whether a user has a permission. Who cannot be asked about has none.
func (d *Dependencies) may(ctx context.Context, caller user.Info, wanted permission) bool {
	decision, _, err := d.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: caller, Verb: wanted.verb, APIGroup: wanted.group, APIVersion: wanted.version, Resource: wanted.resource,
		Subresource: wanted.subresource, Namespace: wanted.namespace, Name: wanted.name, ResourceRequest: true,
	})
	return err == nil && decision == authorizer.DecisionAllow
}

// wantsDependencies is implemented by plugins that look beyond the object.
type wantsDependencies interface{ SetDependencies(*Dependencies) }

// initializer hands the dependencies to plugins when the chain is built.
type initializer struct{ dependencies *Dependencies }

// NewInitializer returns what completes the plugins of this package. The dependencies may be filled in afterwards,
// until the server starts to serve.
func NewInitializer(dependencies *Dependencies) admission.PluginInitializer {
	return initializer{dependencies}
}

// Initialize implements admission.PluginInitializer.
func (i initializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(wantsDependencies); ok {
		wants.SetDependencies(i.dependencies)
	}
}

// dependent is embedded by plugins that look beyond the object.
type dependent struct{ *Dependencies }

// SetDependencies implements wantsDependencies.
func (d *dependent) SetDependencies(dependencies *Dependencies) { d.Dependencies = dependencies }

// ValidateInitialization implements admission.InitializationValidator.
func (d *dependent) ValidateInitialization() error {
	if d.Dependencies == nil {
		return fmt.Errorf("plugin has not been initialised")
	}
	return nil
}

// get reads an object of a known type. What can be no name names nothing: so those who ask say in which field it is.
func get[T runtime.Object](ctx context.Context, reader Reader, resource schema.GroupResource,
	namespace, name string) (T, error) {
	var none T
	if len(path.IsValidPathSegmentName(name)) > 0 {
		return none, apierrors.NewNotFound(resource, name)
	}
	obj, err := reader.Get(ctx, resource, namespace, name)
	if err != nil {
		return none, err
	}
	typed, ok := obj.(T)
	if !ok {
		return none, fmt.Errorf("%s %s/%s is stored as %T", resource, namespace, name, obj)
	}
	return typed, nil
}

// list reads objects of a known type.
func list[T runtime.Object](ctx context.Context, reader Reader, resource schema.GroupResource, namespace string,
	selector fields.Selector) ([]T, error) {
	objects, err := reader.List(ctx, resource, namespace, selector)
	if err != nil {
		return nil, err
	}
	var items []T
	err = meta.EachListItem(objects, func(obj runtime.Object) error {
		typed, ok := obj.(T)
		if !ok {
			return fmt.Errorf("%s are stored as %T", resource, obj)
		}
		items = append(items, typed)
		return nil
	})
	return items, err
}

// nameOf returns the name of an object for messages: with its namespace where it has one.
func nameOf(obj metav1.Object) string {
	if obj.GetNamespace() == "" {
		return obj.GetName()
	}
	return obj.GetNamespace() + "/" + obj.GetName()
}
