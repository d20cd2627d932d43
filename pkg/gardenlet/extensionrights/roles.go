// Package extensionrights gives extensions rights where they need them. What an extension may do within the namespace
// of a shoot stands in ClusterRoles of its chart that the chart binds nowhere; gardenlet binds them in the namespaces
// of those shoots that have objects of the extension's kinds and types. Which these are is noted in the namespace by
// gardenlet: what others write into objects decides about no rights.
package extensionrights

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const (
	resourcesAnnotation = extensionsv1alpha1.AnnotationRoleResources
	accountAnnotation   = extensionsv1alpha1.AnnotationRoleServiceAccount
	prefixAnnotation    = extensionsv1alpha1.AnnotationRoleNamespacePrefix

	// LabelRegistration, on ClusterRoles and what binds them, names the ControllerRegistration; gardenlet sets it.
	LabelRegistration = "extensions.trellis.garden/registration"
	// LabelShootNamespace, on a namespace made for such a role's namespace prefix, is the namespace of the shoot.
	LabelShootNamespace = "extensions.trellis.garden/shoot-namespace"
)

// prefixPattern is what prefixes look like: no shoot and nothing of the garden is in a namespace with such a beginning.
var prefixPattern = regexp.MustCompile(`^[a-z]{1,20}-$`)

// ExtensionNamespace is where an extension is installed.
func ExtensionNamespace(registration string) string { return "extension-" + registration }

// Pair names a kind with a type, as extensionsv1alpha1.AnnotationRoleResources does.
func Pair(kind, extensionType string) string { return kind + "/" + extensionType }

// Accept returns what makes ClusterRoles of the chart of a registration known. Kinds and types that the registration
// does not have are left out.
func Accept(registration string,
	resources []gardencorev1beta1.ControllerResource) func(*unstructured.Unstructured) error {
	offered := sets.New[string]()
	for _, resource := range resources {
		offered.Insert(Pair(resource.Kind, resource.Type))
	}
	return func(object *unstructured.Unstructured) error {
		if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRole"}) {
			return nil
		}
		labels, annotations := object.GetLabels(), object.GetAnnotations()
		delete(labels, LabelRegistration)
		if accepted := parse(annotations[resourcesAnnotation]).Intersection(offered); accepted.Len() > 0 {
			annotations[resourcesAnnotation] = format(accepted)
			if labels == nil {
				labels = map[string]string{}
			}
			labels[LabelRegistration] = registration
		}
		object.SetLabels(labels)
		object.SetAnnotations(annotations)
		return checkRole(object)
	}
}

// checkRole tells the author of a chart what is missing.
func checkRole(object client.Object) error {
	if object.GetLabels()[LabelRegistration] == "" {
		return nil
	}
	annotations := object.GetAnnotations()
	if annotations[accountAnnotation] == "" {
		return fmt.Errorf("ClusterRole %s: annotation %s is missing: which account is to get the rights?",
			object.GetName(), accountAnnotation)
	}
	if prefix := annotations[prefixAnnotation]; prefix != "" && !prefixPattern.MatchString(prefix) {
		return fmt.Errorf("ClusterRole %s: annotation %s is %q; it has to be up to 20 letters in lower case and a "+
			"hyphen", object.GetName(), prefixAnnotation, prefix)
	}
	return nil
}

// role is an accepted ClusterRole.
type role struct {
	name, registration, account, prefix string
	serves                              sets.Set[string]
}

// roles returns what was accepted, of all extensions of the seed. Only who has all rights of a ClusterRole already
// could make it one of these: that is how the API server treats changes of ClusterRoles.
func roles(ctx context.Context, seed client.Client) ([]role, error) {
	list := &rbacv1.ClusterRoleList{}
	if err := seed.List(ctx, list, client.HasLabels{LabelRegistration}); err != nil {
		return nil, fmt.Errorf("listing the ClusterRoles of extensions: %w", err)
	}
	var accepted []role
	for i := range list.Items {
		object := &list.Items[i]
		if checkRole(object) != nil {
			continue
		}
		accepted = append(accepted, role{
			name: object.Name, registration: object.Labels[LabelRegistration],
			account: object.Annotations[accountAnnotation],
			prefix:  object.Annotations[prefixAnnotation],
			serves:  parse(object.Annotations[resourcesAnnotation]),
		})
	}
	return accepted, nil
}

// subject is who gets the rights.
func (r role) subject() rbacv1.Subject {
	return rbacv1.Subject{
		Kind: rbacv1.ServiceAccountKind, Namespace: ExtensionNamespace(r.registration), Name: r.account,
	}
}

// binding is what gives the rights in a namespace.
func (r role) binding(namespace string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: r.name, Labels: map[string]string{LabelRegistration: r.registration},
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.name},
		Subjects: []rbacv1.Subject{r.subject()},
	}
}

// parse reads what format has written.
func parse(list string) sets.Set[string] {
	pairs := sets.New[string]()
	for _, pair := range strings.Split(list, ",") {
		if pair = strings.TrimSpace(pair); pair != "" {
			pairs.Insert(pair)
		}
	}
	return pairs
}

func format(pairs sets.Set[string]) string { return strings.Join(sets.List(pairs), ",") }

// serving returns the roles that serve any of the pairs.
func serving(all []role, pairs sets.Set[string]) []role {
	return slices.DeleteFunc(slices.Clone(all), func(r role) bool { return !r.serves.HasAny(pairs.UnsortedList()...) })
}
