// Package apply is server-side apply, as all processes do it: with force, as the process that asks, and with errors
// that name the object. Members of a fleet are written through connections of their own (pkg/federation/members), and
// what `plan` only tries is sent as its user would send it; both call the API server themselves.
package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Field managers, one for each process. A name must not change: what was applied under the old one would never be
// removed again.
const (
	// Gardenlet owns the components of control planes, whoever deploys them, and what gardenlet applies besides.
	Gardenlet client.FieldOwner = "gardenlet"
	// ResourceManager owns the objects of ManagedResources.
	ResourceManager client.FieldOwner = "resource-manager"
	// Federation owns in a fleet what its federation process installs there, and in members what the fleet wants there.
	Federation client.FieldOwner = "trellis-federation"
	// Membership is the extension that makes shoots members of their project's fleets.
	Membership client.FieldOwner = "trellis-membership"
	// Backups are the extensions that give etcds access to where they are backed up.
	Backups client.FieldOwner = "trellis-backups"
	// Charts owns the CustomResourceDefinitions of charts, whichever process installs them.
	Charts client.FieldOwner = "trellis-helm"
	// Landscape is what installs the local landscape.
	Landscape client.FieldOwner = "trellis-landscape"
	// Trellisctl is the command line client.
	Trellisctl client.FieldOwner = "trellisctl"
)

// Objects applies objects one after another. Fields that are set by others and not by manager stay.
func Objects(ctx context.Context, c client.Client, manager client.FieldOwner, objects ...client.Object) error {
	for _, object := range objects {
		desired, err := ToUnstructured(c.Scheme(), object)
		if err != nil {
			return fmt.Errorf("applying %s: %w", Describe(c.Scheme(), object), err)
		}
		if err := Unstructured(ctx, c, manager, desired); err != nil {
			return err
		}
	}
	return nil
}

// Unstructured applies an object as it is given. Afterwards it holds what the API server stored. One with a
// resourceVersion is refused when it has changed since.
func Unstructured(ctx context.Context, c client.Client, manager client.FieldOwner,
	object *unstructured.Unstructured) error {
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), manager,
		client.ForceOwnership); err != nil {
		return fmt.Errorf("applying %s: %w", Describe(c.Scheme(), object), err)
	}
	return nil
}

// ToUnstructured returns the object as it is sent: with its kind, and without status and fields the server sets.
func ToUnstructured(scheme *runtime.Scheme, object client.Object) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return nil, err
	}
	// What is unstructured already is not copied by the conversion.
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	result := &unstructured.Unstructured{Object: content}
	result.SetGroupVersionKind(gvk)
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "managedFields")
	unstructured.RemoveNestedField(content, "metadata", "resourceVersion")
	unstructured.RemoveNestedField(content, "metadata", "uid")
	removeNullTimestamps(content)
	return result, nil
}

// removeNullTimestamps drops creationTimestamp: null, which typed templates carry and apply would own.
func removeNullTimestamps(value any) {
	switch v := value.(type) {
	case map[string]any:
		if timestamp, found := v["creationTimestamp"]; found && timestamp == nil {
			delete(v, "creationTimestamp")
		}
		for _, child := range v {
			removeNullTimestamps(child)
		}
	case []any:
		for _, child := range v {
			removeNullTimestamps(child)
		}
	}
}

// Describe names an object for people: "Deployment shoot--demo--member1/kube-apiserver".
func Describe(scheme *runtime.Scheme, object client.Object) string {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if gvk, err := apiutil.GVKForObject(object, scheme); err == nil {
		kind = gvk.Kind
	}
	if kind == "" {
		kind = fmt.Sprintf("%T", object)
	}
	if object.GetNamespace() == "" {
		return kind + " " + object.GetName()
	}
	return kind + " " + object.GetNamespace() + "/" + object.GetName()
}
