// Package controllerinstallation decides which extensions every seed needs, and records the decision as
// ControllerInstallations, which the seed's gardenlet carries out.
package controllerinstallation

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Kinds of extension objects.
const (
	kindBackupBucket          = "BackupBucket"
	kindBackupEntry           = "BackupEntry"
	kindBastion               = "Bastion"
	kindContainerRuntime      = "ContainerRuntime"
	kindControlPlane          = "ControlPlane"
	kindDNSRecord             = "DNSRecord"
	kindExtension             = "Extension"
	kindInfrastructure        = "Infrastructure"
	kindNetwork               = "Network"
	kindOperatingSystemConfig = "OperatingSystemConfig"
	kindWorker                = "Worker"
)

// KindType is one kind of extension object of one type, e.g. Worker/local.
type KindType struct{ Kind, Type string }

// Situation is what decides which extensions a seed needs.
type Situation struct {
	Seed *corev1beta1.Seed
	// Shoots are those assigned to the seed, and those that are still leaving it.
	Shoots []*corev1beta1.Shoot
	// BackupBuckets are those of the seed.
	BackupBuckets []*corev1beta1.BackupBucket
	// BackupEntryProviders are the providers of the buckets in which backups lie that the seed cares for.
	BackupEntryProviders sets.Set[string]
	// Registrations are all extensions of the garden.
	Registrations []*corev1beta1.ControllerRegistration
}

// Required returns the names of the registrations that the seed needs.
func Required(situation Situation) sets.Set[string] {
	required := sets.New[string]()
	wanted := wantedKindTypes(situation)
	for _, registration := range situation.Registrations {
		if registration.DeletionTimestamp == nil && registration.Spec.Deployment != nil && isRequired(registration, situation, wanted) {
			required.Insert(registration.Name)
		}
	}
	return required
}

func isRequired(registration *corev1beta1.ControllerRegistration, situation Situation, wanted sets.Set[KindType]) bool {
	deployment := registration.Spec.Deployment
	if len(deployment.DeploymentRefs) == 0 || !selectsSeed(deployment.SeedSelector, situation.Seed) {
		return false
	}
	empty := len(situation.Shoots) == 0 && len(situation.BackupBuckets) == 0 && len(situation.BackupEntryProviders) == 0
	if empty && situation.Seed.DeletionTimestamp != nil {
		return false
	}
	switch ptr.Deref(deployment.Policy, corev1beta1.ControllerDeploymentPolicyOnDemand) {
	case corev1beta1.ControllerDeploymentPolicyAlways:
		return true
	case corev1beta1.ControllerDeploymentPolicyAlwaysExceptNoShoots:
		return len(situation.Shoots) > 0
	}
	return slices.ContainsFunc(registration.Spec.Resources, func(resource corev1beta1.ControllerResource) bool {
		return wanted.Has(KindType{resource.Kind, resource.Type})
	})
}

func selectsSeed(selector *metav1.LabelSelector, seed *corev1beta1.Seed) bool {
	if selector == nil {
		return true
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(labels.Set(seed.Labels))
}

// wantedKindTypes collects what the seed and everything on it needs.
func wantedKindTypes(situation Situation) sets.Set[KindType] {
	wanted := wantedBySeed(situation.Seed)
	for _, bucket := range situation.BackupBuckets {
		wanted.Insert(KindType{kindBackupBucket, bucket.Spec.Provider.Type}, KindType{kindBackupEntry, bucket.Spec.Provider.Type})
	}
	for provider := range situation.BackupEntryProviders {
		wanted.Insert(KindType{kindBackupEntry, provider})
	}
	for _, resource := range extensionsEnabledFor(situation.Registrations, corev1beta1.ClusterTypeSeed) {
		wanted.Insert(KindType{kindExtension, resource.Type})
	}
	automatic := extensionsEnabledFor(situation.Registrations, corev1beta1.ClusterTypeShoot)
	for _, shoot := range situation.Shoots {
		wanted = wanted.Union(wantedByShoot(shoot, automatic))
	}
	return wanted
}

func wantedBySeed(seed *corev1beta1.Seed) sets.Set[KindType] {
	wanted := sets.New(
		KindType{kindControlPlane, seed.Spec.Provider.Type},
		KindType{kindInfrastructure, seed.Spec.Provider.Type},
		KindType{kindWorker, seed.Spec.Provider.Type},
	)
	if seed.Spec.Backup != nil {
		wanted.Insert(KindType{kindBackupBucket, seed.Spec.Backup.Provider}, KindType{kindBackupEntry, seed.Spec.Backup.Provider})
	}
	if seed.Spec.DNS.Provider != nil {
		wanted.Insert(KindType{kindDNSRecord, seed.Spec.DNS.Provider.Type})
	}
	if seed.Spec.DNS.Internal != nil {
		wanted.Insert(KindType{kindDNSRecord, seed.Spec.DNS.Internal.Type})
	}
	for _, domain := range seed.Spec.DNS.Defaults {
		wanted.Insert(KindType{kindDNSRecord, domain.Type})
	}
	for _, extension := range seed.Spec.Extensions {
		wanted.Insert(KindType{kindExtension, extension.Type})
	}
	return wanted
}

// wantedByShoot collects what a shoot needs. Automatic extensions count unless the shoot disables them.
func wantedByShoot(shoot *corev1beta1.Shoot, automatic []corev1beta1.ControllerResource) sets.Set[KindType] {
	wanted := sets.New[KindType]()
	disabled := sets.New[string]()
	for _, extension := range shoot.Spec.Extensions {
		if ptr.Deref(extension.Disabled, false) {
			disabled.Insert(extension.Type)
			continue
		}
		wanted.Insert(KindType{kindExtension, extension.Type})
	}
	workerless := len(shoot.Spec.Provider.Workers) == 0
	for _, resource := range automatic {
		if !disabled.Has(resource.Type) && (!workerless || ptr.Deref(resource.WorkerlessSupported, false)) {
			wanted.Insert(KindType{kindExtension, resource.Type})
		}
	}
	if shoot.Spec.DNS != nil {
		for _, provider := range shoot.Spec.DNS.Providers {
			if provider.Type != nil && *provider.Type != corev1beta1.DNSUnmanaged {
				wanted.Insert(KindType{kindDNSRecord, *provider.Type})
			}
		}
	}
	if workerless {
		return wanted
	}
	return wanted.Union(wantedByWorkers(shoot))
}

func wantedByWorkers(shoot *corev1beta1.Shoot) sets.Set[KindType] {
	provider := shoot.Spec.Provider.Type
	wanted := sets.New(
		KindType{kindControlPlane, provider}, KindType{kindInfrastructure, provider}, KindType{kindWorker, provider}, KindType{kindBastion, provider},
	)
	if shoot.Spec.Networking != nil && shoot.Spec.Networking.Type != nil {
		wanted.Insert(KindType{kindNetwork, *shoot.Spec.Networking.Type})
	}
	for _, worker := range shoot.Spec.Provider.Workers {
		if worker.Machine.Image != nil {
			wanted.Insert(KindType{kindOperatingSystemConfig, worker.Machine.Image.Name})
		}
		if worker.CRI != nil {
			for _, runtime := range worker.CRI.ContainerRuntimes {
				wanted.Insert(KindType{kindContainerRuntime, runtime.Type})
			}
		}
	}
	return wanted
}

// extensionsEnabledFor returns the extensions that clusters of a type have without asking for them.
func extensionsEnabledFor(registrations []*corev1beta1.ControllerRegistration, clusterType corev1beta1.ClusterType) []corev1beta1.ControllerResource {
	var enabled []corev1beta1.ControllerResource
	for _, registration := range registrations {
		for _, resource := range registration.Spec.Resources {
			if resource.Kind == kindExtension && slices.Contains(resource.AutoEnable, clusterType) {
				enabled = append(enabled, resource)
			}
		}
	}
	return enabled
}
