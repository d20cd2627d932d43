package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	defaultGardenletReplicas      = 2
	defaultGardenletHistoryLimit  = 2
	defaultManagedSeedSetReplicas = 1
	defaultManagedSeedSetHistory  = 10
	latestTag                     = "latest"
)

// RegisterDefaults makes a scheme set defaults in the kinds of this package whenever it decodes them.
func RegisterDefaults(scheme *runtime.Scheme) error {
	scheme.AddTypeDefaultingFunc(&ManagedSeed{}, func(obj any) { SetDefaultsManagedSeed(obj.(*ManagedSeed)) })
	scheme.AddTypeDefaultingFunc(&ManagedSeedList{},
		func(obj any) { each(obj.(*ManagedSeedList).Items, SetDefaultsManagedSeed) })
	scheme.AddTypeDefaultingFunc(&ManagedSeedSet{}, func(obj any) { SetDefaultsManagedSeedSet(obj.(*ManagedSeedSet)) })
	scheme.AddTypeDefaultingFunc(&ManagedSeedSetList{},
		func(obj any) { each(obj.(*ManagedSeedSetList).Items, SetDefaultsManagedSeedSet) })
	scheme.AddTypeDefaultingFunc(&Gardenlet{}, func(obj any) { SetDefaultsGardenlet(obj.(*Gardenlet)) })
	scheme.AddTypeDefaultingFunc(&GardenletList{},
		func(obj any) { each(obj.(*GardenletList).Items, SetDefaultsGardenlet) })
	return nil
}

func each[T any](items []T, set func(*T)) {
	for i := range items {
		set(&items[i])
	}
}

// SetDefaultsManagedSeed sets what a ManagedSeed has when nothing is said.
func SetDefaultsManagedSeed(managedSeed *ManagedSeed) { setDefaultsManagedSeedSpec(&managedSeed.Spec) }

func setDefaultsManagedSeedSpec(spec *ManagedSeedSpec) {
	gardenlet := &spec.Gardenlet
	setDefaultsDeployment(setBlock(&gardenlet.Deployment))
	setDefault(&gardenlet.Bootstrap, BootstrapToken)
	setDefault(&gardenlet.MergeWithParent, true)
}

// SetDefaultsGardenlet sets what a Gardenlet has when nothing is said.
func SetDefaultsGardenlet(gardenlet *Gardenlet) {
	setDefaultsDeployment(&gardenlet.Spec.Deployment.GardenletDeployment)
}

func setDefaultsDeployment(deployment *GardenletDeployment) {
	setDefault(&deployment.ReplicaCount, defaultGardenletReplicas)
	setDefault(&deployment.RevisionHistoryLimit, defaultGardenletHistoryLimit)
	setDefault(&deployment.EnableHealthProbes, true)
	image := setBlock(&deployment.Image)
	if image.Tag != nil && *image.Tag == latestTag {
		setDefault(&image.PullPolicy, corev1.PullAlways)
	}
	setDefault(&image.PullPolicy, corev1.PullIfNotPresent)
}

// SetDefaultsManagedSeedSet sets what a ManagedSeedSet and its ManagedSeeds have when nothing is said. Its Shoots get
// their defaults when they are created: some depend on their names.
func SetDefaultsManagedSeedSet(set *ManagedSeedSet) {
	spec := &set.Spec
	setDefault(&spec.Replicas, defaultManagedSeedSetReplicas)
	setDefault(&spec.RevisionHistoryLimit, defaultManagedSeedSetHistory)
	strategy := setBlock(&spec.UpdateStrategy)
	setDefault(&strategy.Type, RollingUpdateStrategyType)
	if strategy.RollingUpdate != nil {
		setDefault(&strategy.RollingUpdate.Partition, 0)
	}
	setDefaultsManagedSeedSpec(&spec.Template.Spec)
}

// setDefault sets what a pointer points to when nothing was given.
func setDefault[T any](pointer **T, value T) {
	if *pointer == nil {
		*pointer = &value
	}
}

// setBlock makes an empty struct of one that was not given, so that its fields can get defaults.
func setBlock[T any](pointer **T) *T {
	if *pointer == nil {
		*pointer = new(T)
	}
	return *pointer
}
