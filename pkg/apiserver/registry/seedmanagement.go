package registry

import (
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

func managedSeeds() Served {
	type managedSeed = *seedmanagementv1alpha1.ManagedSeed
	shootName := func(m managedSeed) string { return ptr.Deref(m.Spec.Shoot, seedmanagementv1alpha1.Shoot{}).Name }
	kind := &Kind[managedSeed]{
		Version: seedmanagementv1alpha1.SchemeGroupVersion, Plural: "managedseeds", Singular: "managedseed",
		Namespaced: true,
		ShortNames: []string{"ms"},
		New:        func() managedSeed { return &seedmanagementv1alpha1.ManagedSeed{} },
		NewList:    func() runtime.Object { return &seedmanagementv1alpha1.ManagedSeedList{} },
		Spec:       func(m managedSeed) any { return m.Spec },
		CopySpec:   func(to, from managedSeed) { to.Spec = from.Spec },
		CopyStatus: func(to, from managedSeed) { to.Status = from.Status },
		Columns: []Column[managedSeed]{
			{Name: "Status", Description: "Whether the seed is registered.", Cell: managedSeedStatusCell},
			{
				Name: "Shoot", Description: "The shoot that is the seed.",
				Cell: func(m managedSeed) any { return shootName(m) },
			},
		},
		Fields:               map[string]func(managedSeed) string{"spec.shoot.name": shootName},
		Index:                "spec.shoot.name",
		Validate:             seedmanagementv1alpha1.ValidateManagedSeed,
		ValidateUpdate:       seedmanagementv1alpha1.ValidateManagedSeedUpdate,
		ValidateStatusUpdate: seedmanagementv1alpha1.ValidateManagedSeedStatusUpdate,
	}
	kind.NeedsNewGeneration = operationsMakeGenerations(kind, gardencorev1beta1.GardenerOperationRenewKubeconfig)
	return kind
}

func managedSeedStatusCell(managedSeed *seedmanagementv1alpha1.ManagedSeed) any {
	switch conditionCell(managedSeed.Status.Conditions, seedmanagementv1alpha1.ManagedSeedSeedRegistered) {
	case string(gardencorev1beta1.ConditionTrue):
		return "Registered"
	case string(gardencorev1beta1.ConditionUnknown), unknown:
		return "Unknown"
	}
	return "NotRegistered"
}

func managedSeedSets() Served {
	type set = *seedmanagementv1alpha1.ManagedSeedSet
	kind := &Kind[set]{
		Version: seedmanagementv1alpha1.SchemeGroupVersion, Plural: "managedseedsets", Singular: "managedseedset",
		Namespaced: true,
		ShortNames: []string{"mss"},
		New:        func() set { return &seedmanagementv1alpha1.ManagedSeedSet{} },
		NewList:    func() runtime.Object { return &seedmanagementv1alpha1.ManagedSeedSetList{} },
		Spec:       func(m set) any { return m.Spec },
		CopySpec:   func(to, from set) { to.Spec = from.Spec },
		CopyStatus: func(to, from set) { to.Status = from.Status },
		Columns: []Column[set]{
			{Name: "Ready", Description: "The replicas that are ready, of those that are wanted.",
				Cell: func(m set) any {
					return fmt.Sprintf("%d/%d", m.Status.ReadyReplicas, ptr.Deref(m.Spec.Replicas, 0))
				}},
			{Name: "Pending", Description: "The replica that is waited for, and why.", Cell: func(m set) any {
				if m.Status.PendingReplica == nil {
					return ""
				}
				return m.Status.PendingReplica.Name + ":" + string(m.Status.PendingReplica.Reason)
			}},
		},
		Validate:             seedmanagementv1alpha1.ValidateManagedSeedSet,
		ValidateUpdate:       seedmanagementv1alpha1.ValidateManagedSeedSetUpdate,
		ValidateStatusUpdate: seedmanagementv1alpha1.ValidateManagedSeedSetStatusUpdate,
	}
	kind.NeedsNewGeneration = operationsMakeGenerations(kind)
	return kind
}

func gardenlets() Served {
	type gardenlet = *seedmanagementv1alpha1.Gardenlet
	kind := &Kind[gardenlet]{
		Version: seedmanagementv1alpha1.SchemeGroupVersion, Plural: "gardenlets", Singular: "gardenlet",
		Namespaced: true,
		ShortNames: []string{"gl", "glet"},
		New:        func() gardenlet { return &seedmanagementv1alpha1.Gardenlet{} },
		NewList:    func() runtime.Object { return &seedmanagementv1alpha1.GardenletList{} },
		Spec:       func(g gardenlet) any { return g.Spec },
		CopySpec:   func(to, from gardenlet) { to.Spec = from.Spec },
		CopyStatus: func(to, from gardenlet) { to.Status = from.Status },
		Columns: []Column[gardenlet]{
			{
				Name: "OCI Repository", Description: "Where the chart is pulled from.",
				Cell: func(g gardenlet) any { return g.Spec.Deployment.Helm.OCIRepository.URL() },
			},
			{Name: "Reconciled", Description: "Whether it is deployed as wanted.", Cell: func(g gardenlet) any {
				return conditionCell(g.Status.Conditions, seedmanagementv1alpha1.GardenletReconciled)
			}},
		},
		Validate:             seedmanagementv1alpha1.ValidateGardenlet,
		ValidateUpdate:       seedmanagementv1alpha1.ValidateGardenletUpdate,
		ValidateStatusUpdate: seedmanagementv1alpha1.ValidateGardenletStatusUpdate,
	}
	kind.NeedsNewGeneration = operationsMakeGenerations(kind, gardencorev1beta1.GardenerOperationRenewKubeconfig,
		seedmanagementv1alpha1.OperationForceRedeploy)
	return kind
}

// operationsMakeGenerations says when controllers have to act: when the specification has changed, and when an
// operation is asked for. The generation alone carries "reconcile" out, so it is taken away; what else is asked for
// stays until it has been done.
func operationsMakeGenerations[T Object](kind *Kind[T], lasting ...string) func(object, old T) bool {
	return func(object, old T) bool {
		changed := !apiequality.Semantic.DeepEqual(kind.Spec(object), kind.Spec(old))
		annotations := object.GetAnnotations()
		operation := annotations[gardencorev1beta1.GardenerOperation]
		if operation == gardencorev1beta1.GardenerOperationReconcile {
			delete(annotations, gardencorev1beta1.GardenerOperation)
			return true
		}
		return changed || slices.Contains(lasting, operation)
	}
}
