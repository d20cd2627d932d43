package controllers

import (
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// compact is the transformation of the caches: it takes away who manages which field, and keeps once what is the same
// in the many bindings and Works of a fleet. A fleet with thousands of objects has their decisions and Works in memory.
// The explanation of a decision is only kept in the status, once that has it.
func compact(cached any) (any, error) {
	object, ok := cached.(client.Object)
	if !ok {
		return cached, nil
	}
	object.SetManagedFields(nil)
	switch o := object.(type) {
	case bindings.Binding:
		if karmada.IsReported(o) {
			bindings.RemoveMarks(o, workv1alpha2.DecisionReportAnnotation)
		}
		compactMeta(o)
		compactStatus(o.BindingStatus())
	case *workv1alpha1.Work:
		compactMeta(o)
		compactConditions(o.Status.Conditions)
		o.Status.Conditions, o.Status.ManifestStatuses = exactly(o.Status.Conditions),
			exactly(o.Status.ManifestStatuses)
		o.Spec.Workload.Manifests = exactly(o.Spec.Workload.Manifests)
		for i := range o.Status.ManifestStatuses {
			of := &o.Status.ManifestStatuses[i].Identifier
			intern(&of.Group, &of.Version, &of.Kind, &of.Resource, &of.Namespace)
		}
	}
	return object, nil
}

func compactMeta(object client.Object) {
	namespace, finalizers := object.GetNamespace(), exactly(object.GetFinalizers())
	intern(&namespace)
	for i := range finalizers {
		intern(&finalizers[i])
	}
	object.SetNamespace(namespace)
	object.SetFinalizers(finalizers)
	object.SetLabels(compactKeys(object.GetLabels()))
	object.SetAnnotations(compactKeys(object.GetAnnotations()))
}

// compactKeys shares the names of labels and annotations, and placements, which are long and the same for all objects
// of a policy.
func compactKeys(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	result := make(map[string]string, len(m))
	for key, value := range m {
		intern(&key)
		if key == policyv1alpha1.AppliedPlacementAnnotation {
			intern(&value)
		}
		result[key] = value
	}
	return result
}

func compactConditions(conditions []metav1.Condition) {
	for i := range conditions {
		intern(&conditions[i].Type, &conditions[i].Reason)
	}
}

func compactStatus(status *workv1alpha2.ResourceBindingStatus) {
	compactConditions(status.Conditions)
	status.Conditions, status.AggregatedStatus = exactly(status.Conditions), exactly(status.AggregatedStatus)
	for i := range status.AggregatedStatus {
		intern(&status.AggregatedStatus[i].ClusterName)
	}
	if status.Decision != nil {
		for i := range status.Decision.Rejections {
			intern(&status.Decision.Rejections[i].Reason, &status.Decision.Rejections[i].Message)
		}
	}
}

// intern gives equal texts the same memory.
func intern(texts ...*string) {
	for _, text := range texts {
		*text = unique.Make(*text).Value()
	}
}

// exactly gives back what a decoder has left room for.
func exactly[T any](list []T) []T {
	if cap(list) == len(list) {
		return list
	}
	return append(make([]T, 0, len(list)), list...)
}
