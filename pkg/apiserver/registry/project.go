package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func projects() Served {
	return &Kind[*corev1beta1.Project]{
		Version: corev1beta1.SchemeGroupVersion, Plural: "projects", Singular: "project",
		New:        func() *corev1beta1.Project { return &corev1beta1.Project{} },
		NewList:    func() runtime.Object { return &corev1beta1.ProjectList{} },
		Spec:       func(p *corev1beta1.Project) any { return p.Spec },
		CopySpec:   func(to, from *corev1beta1.Project) { to.Spec = from.Spec },
		CopyStatus: func(to, from *corev1beta1.Project) { to.Status = from.Status },
		// The finalizer is there from the first moment, so that no project goes without its namespace.
		PrepareForCreate: func(_ context.Context, p *corev1beta1.Project) {
			controllerutil.AddFinalizer(p, corev1beta1.GardenerName)
		},
		Columns: []Column[*corev1beta1.Project]{
			{Name: "Namespace", Description: "The namespace of the project.", Cell: func(p *corev1beta1.Project) any { return orElse(p.Spec.Namespace, unknown) }},
			{Name: "Status", Description: "The phase of the project.", Cell: func(p *corev1beta1.Project) any { return string(p.Status.Phase) }},
			{Name: "Owner", Description: "Who owns the project.", Cell: func(p *corev1beta1.Project) any {
				if p.Spec.Owner == nil {
					return unknown
				}
				return p.Spec.Owner.Name
			}},
			{Name: "Creator", Description: "Who created the project.", Wide: true, Cell: func(p *corev1beta1.Project) any {
				if p.Spec.CreatedBy == nil {
					return unknown
				}
				return p.Spec.CreatedBy.Name
			}},
		},
		Fields: map[string]func(*corev1beta1.Project) string{
			"spec.namespace": func(p *corev1beta1.Project) string { return ptr.Deref(p.Spec.Namespace, "") },
		},
		Index:                "spec.namespace",
		Validate:             corev1beta1.ValidateProject,
		ValidateUpdate:       corev1beta1.ValidateProjectUpdate,
		ValidateStatusUpdate: corev1beta1.ValidateProjectStatusUpdate,
	}
}
