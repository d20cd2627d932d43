package controllers

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/members"
)

const (
	// BindableLabel (value "true"), on a Role or ClusterRole of a member, is its owner's word that the fleet may bind
	// it.
	BindableLabel = "federation.trellis.garden/bindable"
	// bootstrappingLabel is on the ClusterRoles that all clusters have from the beginning.
	bootstrappingLabel = "kubernetes.io/bootstrapping"
	bootstrappingRBAC  = "rbac-defaults"
)

// errForeignRole is a role of a member that says nothing about what a role of the same name may in the fleet.
var errForeignRole = errors.New("the member's own role")

// mayBind refuses to bind a role of the member that did not come from the fleet: the fleet's API has compared the
// author's rights with the role of that name in the fleet, which may be a weaker one. Works that people wrote
// themselves are of no author but them.
func (e *execution) mayBind(ctx context.Context, member *members.Member, work *workv1alpha1.Work,
	wanted *unstructured.Unstructured) error {
	gvk := wanted.GroupVersionKind()
	if _, made := bindings.OfWork(work); !made || gvk.Group != rbacv1.GroupName ||
		gvk.Kind != "RoleBinding" && gvk.Kind != "ClusterRoleBinding" {
		return nil
	}
	kind, _, _ := unstructured.NestedString(wanted.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(wanted.Object, "roleRef", "name")
	namespace := wanted.GetNamespace()
	if kind == "ClusterRole" {
		namespace = ""
	}
	mapping, err := member.Mapping(gvk.GroupVersion().WithKind(kind))
	if err != nil {
		return err
	}
	ctx, cancel := members.RequestContext(ctx)
	defer cancel()
	role, err := member.Resource(mapping, namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the member has no %s %s yet; does a policy send it?", kind, name)
	case err != nil:
		return fmt.Errorf("reading %s %s of the member: %w", kind, name, err)
	case isBindable(role, work):
		return nil
	}
	return fmt.Errorf("%w: %s %s did not come from the fleet; have a policy send the fleet's, or the member's owner "+
		"set label %s=true on it", errForeignRole, kind, name, BindableLabel)
}

func isBindable(role *unstructured.Unstructured, work *workv1alpha1.Work) bool {
	labels := role.GetLabels()
	cameFromFleet := isManaged(role) && role.GetAnnotations()[workv1alpha1.NamespaceAnnotation] == work.Namespace
	return cameFromFleet || labels[BindableLabel] == "true" ||
		role.GetKind() == "ClusterRole" && labels[bootstrappingLabel] == bootstrappingRBAC
}
