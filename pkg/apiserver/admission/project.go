package admission

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// projectOf finds the project of a namespace; nil when the namespace belongs to none. Most namespaces are named after
// their project, which saves looking at all projects.
func projectOf(ctx context.Context, reader Reader, namespace string) (*gardencorev1beta1.Project, error) {
	name := strings.TrimPrefix(namespace, gardencorev1beta1.ProjectNamePrefix)
	project, err := get[*gardencorev1beta1.Project](ctx, reader, gardencorev1beta1.Resource("projects"), "", name)
	if err == nil && ptr.Deref(project.Spec.Namespace, "") == namespace {
		return project, nil
	}
	if err != nil && !isMissing(err) {
		return nil, err
	}
	projects, err := list[*gardencorev1beta1.Project](ctx, reader, gardencorev1beta1.Resource("projects"), "",
		fields.OneTermEqualSelector("spec.namespace", namespace))
	if err != nil || len(projects) == 0 {
		return nil, err
	}
	return projects[0], nil
}

func setAnnotation(object metav1.Object, key, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}
