package registry

import (
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func seeds() Served {
	return &Kind[*gardencorev1beta1.Seed]{
		Version: gardencorev1beta1.SchemeGroupVersion, Plural: "seeds", Singular: "seed",
		New:        func() *gardencorev1beta1.Seed { return &gardencorev1beta1.Seed{} },
		NewList:    func() runtime.Object { return &gardencorev1beta1.SeedList{} },
		Spec:       func(s *gardencorev1beta1.Seed) any { return s.Spec },
		CopySpec:   func(to, from *gardencorev1beta1.Seed) { to.Spec = from.Spec },
		CopyStatus: func(to, from *gardencorev1beta1.Seed) { to.Status = from.Status },
		Columns: []Column[*gardencorev1beta1.Seed]{
			{Name: "Status", Description: "Whether the conditions of the seed are fulfilled.", Cell: seedStatusCell},
			{
				Name: "Last Operation", Description: "What gardenlet did last.",
				Cell: func(s *gardencorev1beta1.Seed) any { return operationCell(s.Status.LastOperation) },
			},
			{
				Name: "Provider", Description: "The provider of the seed.",
				Cell: func(s *gardencorev1beta1.Seed) any { return s.Spec.Provider.Type },
			},
			{
				Name: "Region", Description: "The region of the seed.",
				Cell: func(s *gardencorev1beta1.Seed) any { return s.Spec.Provider.Region },
			},
			{Name: "Version", Description: "The version of gardenlet.", Cell: func(s *gardencorev1beta1.Seed) any {
				if s.Status.Gardener == nil {
					return unknown
				}
				return s.Status.Gardener.Version
			}},
			{
				Name: "K8S Version", Description: "The Kubernetes version of the seed.",
				Cell: func(s *gardencorev1beta1.Seed) any { return orElse(s.Status.KubernetesVersion, unknown) },
			},
		},
		NeedsNewGeneration: func(seed, old *gardencorev1beta1.Seed) bool {
			return takeReconcile(seed) || !apiequality.Semantic.DeepEqual(seed.Spec, old.Spec)
		},
		Validate:             gardencorev1beta1.ValidateNewSeed,
		ValidateUpdate:       gardencorev1beta1.ValidateSeedUpdate,
		ValidateStatusUpdate: gardencorev1beta1.ValidateSeedStatusUpdate,
	}
}

// takeReconcile removes the request to reconcile an object, which the new generation carries out, and tells whether it
// was there.
func takeReconcile(object Object) bool {
	annotations := object.GetAnnotations()
	if annotations[gardencorev1beta1.GardenerOperation] != gardencorev1beta1.GardenerOperationReconcile {
		return false
	}
	delete(annotations, gardencorev1beta1.GardenerOperation)
	return true
}
