package admission

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apiserver/reservation"
)

// ProjectValidatorName is the name of the plugin that keeps projects apart.
const ProjectValidatorName = "ProjectValidator"

// projectValidator makes sure that a namespace belongs to one project: its members would otherwise be those of two.
type projectValidator struct {
	*admission.Handler
	dependent
}

var _ admission.ValidationInterface = &projectValidator{}

func newProjectValidator() *projectValidator {
	return &projectValidator{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Validate implements admission.ValidationInterface.
func (p *projectValidator) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	project, old, ok := written[*gardencorev1beta1.Project](a)
	if !ok || project.Spec.Namespace == nil || (old != nil && ptr.Equal(old.Spec.Namespace, project.Spec.Namespace)) {
		return nil
	}
	namespace := *project.Spec.Namespace
	claim := reservation.Claim{Owner: project.Name, Value: namespace}
	return p.reserve(ctx, a, "namespaces/"+namespace, claim,
		func(ctx context.Context, claims []reservation.Claim) error {
			selector := fields.OneTermEqualSelector("spec.namespace", namespace)
			owners, err := list[*gardencorev1beta1.Project](ctx, p.Reader, gardencorev1beta1.Resource("projects"), "",
				selector)
			if err != nil {
				return apierrors.NewInternalError(err)
			}
			for _, claim := range claims {
				owners = append(owners, &gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: claim.Owner}})
			}
			return invalid(a, validateNamespaceIsFree(project, owners))
		})
}

// validateNamespaceIsFree checks the namespace of a project against the projects that have it.
func validateNamespaceIsFree(project *gardencorev1beta1.Project, owners []*gardencorev1beta1.Project) field.ErrorList {
	path, namespace := field.NewPath("spec", "namespace"), *project.Spec.Namespace
	if namespace == gardencorev1beta1.GardenNamespace && project.Name != gardencorev1beta1.GardenNamespace {
		return field.ErrorList{
			field.Invalid(path, namespace,
				fmt.Sprintf("belongs to the garden's own project %q; leave the field out to get namespace %s",
					gardencorev1beta1.GardenNamespace, gardencorev1beta1.ProjectNamePrefix+project.Name)),
		}
	}
	for _, owner := range owners {
		if owner.Name != project.Name {
			return field.ErrorList{
				field.Invalid(path, namespace,
					fmt.Sprintf("belongs to another project; leave the field out to get namespace %s",
						gardencorev1beta1.ProjectNamePrefix+project.Name)),
			}
		}
	}
	return nil
}
