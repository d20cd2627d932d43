package registry

import (
	"context"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func projects() Served {
	return &Kind[*gardencorev1beta1.Project]{
		Version: gardencorev1beta1.SchemeGroupVersion, Plural: "projects", Singular: "project",
		New:        func() *gardencorev1beta1.Project { return &gardencorev1beta1.Project{} },
		NewList:    func() runtime.Object { return &gardencorev1beta1.ProjectList{} },
		Spec:       func(p *gardencorev1beta1.Project) any { return p.Spec },
		CopySpec:   func(to, from *gardencorev1beta1.Project) { to.Spec = from.Spec },
		CopyStatus: func(to, from *gardencorev1beta1.Project) { to.Status = from.Status },
		// The finalizer is there from the first moment, so that no project goes without its namespace.
		PrepareForCreate: func(_ context.Context, p *gardencorev1beta1.Project) {
			controllerutil.AddFinalizer(p, gardencorev1beta1.GardenerName)
		},
		Columns: []Column[*gardencorev1beta1.Project]{
			{
				Name: "Namespace", Description: "The namespace of the project.",
				Cell: func(p *gardencorev1beta1.Project) any { return orElse(p.Spec.Namespace, unknown) },
			},
			{
				Name: "Status", Description: "The phase of the project.",
				Cell: func(p *gardencorev1beta1.Project) any { return string(p.Status.Phase) },
			},
			{Name: "Owner", Description: "Who owns the project.", Cell: func(p *gardencorev1beta1.Project) any {
				if p.Spec.Owner == nil {
					return unknown
				}
				return p.Spec.Owner.Name
			}},
			{Name: "Creator", Description: "Who created the project.", Wide: true,
				Cell: func(p *gardencorev1beta1.Project) any {
					if p.Spec.CreatedBy == nil {
						return unknown
					}
					return p.Spec.CreatedBy.Name
				}},
		},
		Fields: map[string]func(*gardencorev1beta1.Project) string{
			"spec.namespace": func(p *gardencorev1beta1.Project) string { return ptr.Deref(p.Spec.Namespace, "") },
		},
		Index:                "spec.namespace",
		Readers:              projectReaders,
		Validate:             gardencorev1beta1.ValidateProject,
		ValidateUpdate:       gardencorev1beta1.ValidateProjectUpdate,
		ValidateStatusUpdate: gardencorev1beta1.ValidateProjectStatusUpdate,
	}
}

// projectReaders are the members that may get a project (docs/authorization.md). Roles of extensions begin without that
// right.
func projectReaders(p *gardencorev1beta1.Project) []rbacv1.Subject {
	var readers []rbacv1.Subject
	if p.Spec.Owner != nil {
		readers = append(readers, *p.Spec.Owner)
	}
	for _, member := range p.Spec.Members {
		if slices.ContainsFunc(append([]string{member.Role}, member.Roles...), readsProject) {
			readers = append(readers, member.Subject)
		}
	}
	return readers
}

func readsProject(role string) bool {
	return role != "" && !strings.HasPrefix(role, gardencorev1beta1.ProjectMemberExtensionPrefix)
}
