// Package controllerinstallation decides which extensions every seed needs, and records the decision as
// ControllerInstallations, which the seed's gardenlet carries out.
package controllerinstallation

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/extensionuse"
)

// Situation is what decides which extensions a seed needs.
type Situation struct {
	Seed *gardencorev1beta1.Seed
	// Shoots are those assigned to the seed, and those that are still leaving it.
	Shoots []*gardencorev1beta1.Shoot
	// BackupBuckets are those of the seed.
	BackupBuckets []*gardencorev1beta1.BackupBucket
	// BackupEntryProviders are the providers of the buckets in which backups lie that the seed cares for.
	BackupEntryProviders sets.Set[string]
	// Registrations are all extensions of the garden.
	Registrations []*gardencorev1beta1.ControllerRegistration
}

// Required returns the names of the registrations that the seed needs.
func Required(situation Situation) sets.Set[string] {
	required := sets.New[string]()
	wanted := wantedKindTypes(situation)
	for _, registration := range situation.Registrations {
		if registration.DeletionTimestamp == nil && registration.Spec.Deployment != nil &&
			isRequired(registration, situation, wanted) {
			required.Insert(registration.Name)
		}
	}
	return required
}

func isRequired(registration *gardencorev1beta1.ControllerRegistration, situation Situation,
	wanted sets.Set[extensionuse.KindType]) bool {
	deployment := registration.Spec.Deployment
	if len(deployment.DeploymentRefs) == 0 || !selectsSeed(deployment.SeedSelector, situation.Seed) {
		return false
	}
	empty := len(situation.Shoots) == 0 && len(situation.BackupBuckets) == 0 && len(situation.BackupEntryProviders) == 0
	if empty && situation.Seed.DeletionTimestamp != nil {
		return false
	}
	switch ptr.Deref(deployment.Policy, gardencorev1beta1.ControllerDeploymentPolicyOnDemand) {
	case gardencorev1beta1.ControllerDeploymentPolicyAlways:
		return true
	case gardencorev1beta1.ControllerDeploymentPolicyAlwaysExceptNoShoots:
		return len(situation.Shoots) > 0
	}
	return slices.ContainsFunc(registration.Spec.Resources, func(resource gardencorev1beta1.ControllerResource) bool {
		return wanted.Has(extensionuse.KindType{Kind: resource.Kind, Type: resource.Type})
	})
}

func selectsSeed(selector *metav1.LabelSelector, seed *gardencorev1beta1.Seed) bool {
	if selector == nil {
		return true
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(seed.Labels))
}

// wantedKindTypes collects what the seed and everything on it needs.
func wantedKindTypes(situation Situation) sets.Set[extensionuse.KindType] {
	wanted := wantedBySeed(situation.Seed)
	for _, bucket := range situation.BackupBuckets {
		wanted.Insert(extensionuse.KindType{
			Kind: extensionsv1alpha1.BackupBucketResource, Type: bucket.Spec.Provider.Type,
		}, extensionuse.KindType{
			Kind: extensionsv1alpha1.BackupEntryResource, Type: bucket.Spec.Provider.Type,
		})
	}
	for provider := range situation.BackupEntryProviders {
		wanted.Insert(extensionuse.KindType{Kind: extensionsv1alpha1.BackupEntryResource, Type: provider})
	}
	for _, resource := range extensionsEnabledFor(situation.Registrations, gardencorev1beta1.ClusterTypeSeed) {
		wanted.Insert(extensionuse.KindType{Kind: extensionsv1alpha1.ExtensionResource, Type: resource.Type})
	}
	automatic := extensionsEnabledFor(situation.Registrations, gardencorev1beta1.ClusterTypeShoot)
	for _, shoot := range situation.Shoots {
		wanted = wanted.Union(wantedByShoot(shoot, automatic))
	}
	return wanted
}

func wantedBySeed(seed *gardencorev1beta1.Seed) sets.Set[extensionuse.KindType] {
	wanted := kindTypes(extensionuse.OfSeed(seed))
	return wanted.Insert(ofProvider(seed.Spec.Provider.Type, extensionsv1alpha1.InfrastructureResource,
		extensionsv1alpha1.WorkerResource)...)
}

// wantedByShoot collects what a shoot needs. Automatic extensions count unless the shoot disables them.
func wantedByShoot(shoot *gardencorev1beta1.Shoot,
	automatic []gardencorev1beta1.ControllerResource) sets.Set[extensionuse.KindType] {
	wanted := kindTypes(extensionuse.OfShoot(shoot))
	workerless := gardencorev1beta1.IsWorkerless(shoot)
	if !workerless {
		wanted.Insert(ofProvider(shoot.Spec.Provider.Type, extensionsv1alpha1.BastionResource)...)
	}
	for _, resource := range automatic {
		if !disables(shoot, resource.Type) && (!workerless || ptr.Deref(resource.WorkerlessSupported, false)) {
			wanted.Insert(extensionuse.KindType{Kind: extensionsv1alpha1.ExtensionResource, Type: resource.Type})
		}
	}
	return wanted
}

func disables(shoot *gardencorev1beta1.Shoot, extensionType string) bool {
	return slices.ContainsFunc(shoot.Spec.Extensions, func(extension gardencorev1beta1.Extension) bool {
		return extension.Type == extensionType && ptr.Deref(extension.Disabled, false)
	})
}

func kindTypes(uses []extensionuse.Use) sets.Set[extensionuse.KindType] {
	found := sets.New[extensionuse.KindType]()
	for _, use := range uses {
		found.Insert(use.KindType)
	}
	return found
}

func ofProvider(provider string, kinds ...string) []extensionuse.KindType {
	var found []extensionuse.KindType
	for _, kind := range kinds {
		found = append(found, extensionuse.KindType{Kind: kind, Type: provider})
	}
	return found
}

// extensionsEnabledFor returns the extensions that clusters of a type have without asking for them.
func extensionsEnabledFor(registrations []*gardencorev1beta1.ControllerRegistration,
	clusterType gardencorev1beta1.ClusterType) []gardencorev1beta1.ControllerResource {
	var enabled []gardencorev1beta1.ControllerResource
	for _, registration := range registrations {
		for _, resource := range registration.Spec.Resources {
			if resource.Kind == extensionsv1alpha1.ExtensionResource &&
				slices.Contains(resource.AutoEnable, clusterType) {
				enabled = append(enabled, resource)
			}
		}
	}
	return enabled
}
