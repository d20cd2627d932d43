package overrides

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-garden/trellis/pkg/federation/identity"
)

// Who may write OverridePolicies of a namespace changes objects that others wrote, by the rights of the federation.
// What gives rights, or limits those of the namespace's people, is none of theirs: the API server lets them write it
// only if they have the rights themselves, or not at all. ClusterOverridePolicies, which are for administrators of the
// fleet, may change it.

const rbacGroup = "rbac.authorization.k8s.io"

// OthersKinds are kinds of namespaces, by group, that Kubernetes' own role for their administrators doesn't let them
// write. Of the groups without kinds it is all.
var OthersKinds = map[string][]string{
	rbacGroup:          nil,
	"":                 {"ResourceQuota", "LimitRange", "Endpoints"},
	"discovery.k8s.io": {"EndpointSlice"},
}

// AccountAnnotation makes a Secret, together with its type, a token of the service account that it names.
const AccountAnnotation = "kubernetes.io/service-account.name"

var errAccount = fmt.Errorf("type and annotation %s of a Secret make it the token of a service account; only a "+
	"ClusterOverridePolicy may change them", AccountAnnotation)

// mayNotChange tells whether objects of the kind are beyond a namespaced policy.
func (p Policy) mayNotChange(object *unstructured.Unstructured) bool {
	gvk := object.GroupVersionKind()
	kinds, found := OthersKinds[gvk.Group]
	return p.Namespace != "" && found && (kinds == nil || slices.Contains(kinds, gvk.Kind))
}

func errOthersRights(object *unstructured.Unstructured) error {
	return fmt.Errorf("an OverridePolicy changes no %s, which gives or limits rights; a ClusterOverridePolicy may",
		object.GetKind())
}

// account is what an OverridePolicy must leave alone in a Secret; it is empty for other kinds and cluster-wide
// policies.
func (p Policy) account(object *unstructured.Unstructured) string {
	if p.Namespace == "" || object.GetKind() != "Secret" || object.GetAPIVersion() != "v1" {
		return ""
	}
	return fmt.Sprintf("%v of %q", object.Object["type"], object.GetAnnotations()[AccountAnnotation])
}

// marks are labels or annotations of the fleet.
type marks struct {
	field  string
	values map[string]any
}

// ownMarks are those of a map that a patch of this path replaces as a whole: who writes it need not repeat them.
func ownMarks(object *unstructured.Unstructured, path string) marks {
	result := marks{values: map[string]any{}}
	switch path {
	case "/metadata/labels":
		result.field = "labels"
	case "/metadata/annotations":
		result.field = "annotations"
	default:
		return result
	}
	all, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", result.field)
	values, _ := all.(map[string]any)
	for key, value := range values {
		if identity.IsOwn(key) {
			result.values[key] = value
		}
	}
	return result
}

// restore adds those that are missing.
func (m marks) restore(object *unstructured.Unstructured) {
	metadata, _ := object.Object["metadata"].(map[string]any)
	if len(m.values) == 0 || metadata == nil {
		return
	}
	values, isMap := metadata[m.field].(map[string]any)
	if !isMap {
		values = map[string]any{}
		metadata[m.field] = values
	}
	for key, value := range m.values {
		if _, found := values[key]; !found {
			values[key] = value
		}
	}
}
