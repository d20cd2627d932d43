package registration

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ErrNotAllowed is wrapped by errors about objects that the owner of a member keeps from the fleet.
var ErrNotAllowed = errors.New("the member's owner does not allow it")

// Allowance is what the owner of a member lets the fleet manage in it.
type Allowance struct {
	// Namespaces are names; none means all. With namespaces, objects that have none are not allowed.
	Namespaces []string
	// Kinds are like ConfigMap or Deployment.apps; none means all.
	Kinds []string
}

// Bounded tells whether there is anything that the fleet may not manage.
func (a Allowance) Bounded() bool { return len(a.Namespaces) > 0 || len(a.Kinds) > 0 }

// Validate tells which entry is wrong.
func (a Allowance) Validate() error {
	for _, namespace := range a.Namespaces {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			return fmt.Errorf("--allow-namespaces: %q is not the name of a namespace", namespace)
		}
	}
	for _, kind := range a.Kinds {
		name, group, grouped := strings.Cut(kind, ".")
		if len(validation.IsDNS1035Label(strings.ToLower(name))) > 0 || name == strings.ToLower(name) ||
			grouped && len(validation.IsDNS1123Subdomain(group)) > 0 {
			return fmt.Errorf("--allow-kinds: %q is not a kind; write ConfigMap, or Deployment.apps for kinds of a "+
				"group", kind)
		}
	}
	return nil
}

// Check says why an object may not be managed.
func (a Allowance) Check(object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind().GroupKind().String()
	if len(a.Kinds) > 0 && !slices.Contains(a.Kinds, kind) {
		return fmt.Errorf("%w: the agent takes no %s (--allow-kinds)", ErrNotAllowed, kind)
	}
	switch {
	case len(a.Namespaces) == 0 || slices.Contains(a.Namespaces, object.GetNamespace()):
		return nil
	case object.GetNamespace() == "":
		return fmt.Errorf("%w: the agent takes no objects without a namespace (--allow-namespaces)", ErrNotAllowed)
	}
	return fmt.Errorf("%w: the agent takes nothing in namespace %s (--allow-namespaces)", ErrNotAllowed,
		object.GetNamespace())
}
