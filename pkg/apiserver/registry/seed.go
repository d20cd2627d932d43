package registry

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func seeds() Served {
	return &Kind[*corev1beta1.Seed]{
		Version: corev1beta1.SchemeGroupVersion, Plural: "seeds", Singular: "seed",
		New:        func() *corev1beta1.Seed { return &corev1beta1.Seed{} },
		NewList:    func() runtime.Object { return &corev1beta1.SeedList{} },
		Spec:       func(s *corev1beta1.Seed) any { return s.Spec },
		CopySpec:   func(to, from *corev1beta1.Seed) { to.Spec = from.Spec },
		CopyStatus: func(to, from *corev1beta1.Seed) { to.Status = from.Status },
		Columns: []Column[*corev1beta1.Seed]{
			{Name: "Status", Description: "Whether the conditions of the seed are fulfilled.", Cell: seedStatusCell},
			{Name: "Last Operation", Description: "What gardenlet did last.", Cell: func(s *corev1beta1.Seed) any { return operationCell(s.Status.LastOperation) }},
			{Name: "Provider", Description: "The provider of the seed.", Cell: func(s *corev1beta1.Seed) any { return s.Spec.Provider.Type }},
			{Name: "Region", Description: "The region of the seed.", Cell: func(s *corev1beta1.Seed) any { return s.Spec.Provider.Region }},
			{Name: "Version", Description: "The version of gardenlet.", Cell: func(s *corev1beta1.Seed) any {
				if s.Status.Gardener == nil {
					return unknown
				}
				return s.Status.Gardener.Version
			}},
			{Name: "K8S Version", Description: "The Kubernetes version of the seed.", Cell: func(s *corev1beta1.Seed) any { return orElse(s.Status.KubernetesVersion, unknown) }},
		},
		NeedsNewGeneration: func(seed, old *corev1beta1.Seed) bool {
			return takeReconcile(seed) || !apiequality.Semantic.DeepEqual(seed.Spec, old.Spec)
		},
		Validate:             corev1beta1.ValidateNewSeed,
		ValidateUpdate:       corev1beta1.ValidateSeedUpdate,
		ValidateStatusUpdate: corev1beta1.ValidateSeedStatusUpdate,
	}
}

// takeReconcile removes the request to reconcile an object, which the new generation carries out, and tells whether it was there.
func takeReconcile(object Object) bool {
	annotations := object.GetAnnotations()
	if annotations[corev1beta1.GardenerOperation] != corev1beta1.GardenerOperationReconcile {
		return false
	}
	delete(annotations, corev1beta1.GardenerOperation)
	return true
}
