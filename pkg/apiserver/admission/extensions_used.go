package admission

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Kinds of extension objects.
const (
	kindBackupBucket          = "BackupBucket"
	kindBackupEntry           = "BackupEntry"
	kindContainerRuntime      = "ContainerRuntime"
	kindControlPlane          = "ControlPlane"
	kindDNSRecord             = "DNSRecord"
	kindExtension             = "Extension"
	kindInfrastructure        = "Infrastructure"
	kindNetwork               = "Network"
	kindOperatingSystemConfig = "OperatingSystemConfig"
	kindWorker                = "Worker"
)

// extensionUse is one kind of extension object of one type, with the field that asks for it.
type extensionUse struct {
	kind, extensionType string
	path                *field.Path
}

// extensionsOfShoot returns what a shoot asks for, in the order of its fields.
func extensionsOfShoot(shoot *corev1beta1.Shoot) []extensionUse {
	spec := field.NewPath("spec")
	var uses []extensionUse
	if shoot.Spec.DNS != nil {
		for i, provider := range shoot.Spec.DNS.Providers {
			if name := ptr.Deref(provider.Type, ""); name != "" && name != corev1beta1.DNSUnmanaged {
				uses = append(uses, extensionUse{kindDNSRecord, name, spec.Child("dns", "providers").Index(i).Child("type")})
			}
		}
	}
	uses = append(uses, extensionsListed(shoot.Spec.Extensions, spec.Child("extensions"))...)
	if corev1beta1.IsWorkerless(shoot) {
		return uses
	}
	if shoot.Spec.Networking != nil && ptr.Deref(shoot.Spec.Networking.Type, "") != "" {
		uses = append(uses, extensionUse{kindNetwork, *shoot.Spec.Networking.Type, spec.Child("networking", "type")})
	}
	provider := spec.Child("provider")
	for _, kind := range []string{kindControlPlane, kindInfrastructure, kindWorker} {
		uses = append(uses, extensionUse{kind, shoot.Spec.Provider.Type, provider.Child("type")})
	}
	for i := range shoot.Spec.Provider.Workers {
		uses = append(uses, extensionsOfWorker(&shoot.Spec.Provider.Workers[i], provider.Child("workers").Index(i))...)
	}
	return uses
}

func extensionsListed(extensions []corev1beta1.Extension, path *field.Path) []extensionUse {
	var uses []extensionUse
	for i, extension := range extensions {
		if !ptr.Deref(extension.Disabled, false) {
			uses = append(uses, extensionUse{kindExtension, extension.Type, path.Index(i).Child("type")})
		}
	}
	return uses
}

func extensionsOfWorker(worker *corev1beta1.Worker, path *field.Path) []extensionUse {
	var uses []extensionUse
	if worker.Machine.Image != nil {
		uses = append(uses, extensionUse{kindOperatingSystemConfig, worker.Machine.Image.Name, path.Child("machine", "image", "name")})
	}
	if worker.CRI != nil {
		for i, runtime := range worker.CRI.ContainerRuntimes {
			uses = append(uses, extensionUse{kindContainerRuntime, runtime.Type, path.Child("cri", "containerRuntimes").Index(i).Child("type")})
		}
	}
	return uses
}

// extensionsOfSeed returns what a seed asks for itself.
func extensionsOfSeed(seed *corev1beta1.Seed) []extensionUse {
	spec := field.NewPath("spec")
	uses := []extensionUse{{kindControlPlane, seed.Spec.Provider.Type, spec.Child("provider", "type")}}
	if seed.Spec.Backup != nil {
		for _, kind := range []string{kindBackupBucket, kindBackupEntry} {
			uses = append(uses, extensionUse{kind, seed.Spec.Backup.Provider, spec.Child("backup", "provider")})
		}
	}
	dns := spec.Child("dns")
	if seed.Spec.DNS.Provider != nil {
		uses = append(uses, extensionUse{kindDNSRecord, seed.Spec.DNS.Provider.Type, dns.Child("provider", "type")})
	}
	if seed.Spec.DNS.Internal != nil {
		uses = append(uses, extensionUse{kindDNSRecord, seed.Spec.DNS.Internal.Type, dns.Child("internal", "type")})
	}
	for i, provider := range seed.Spec.DNS.Defaults {
		uses = append(uses, extensionUse{kindDNSRecord, provider.Type, dns.Child("defaults").Index(i).Child("type")})
	}
	return append(uses, extensionsListed(seed.Spec.Extensions, spec.Child("extensions"))...)
}

// kindAndType is an extension as a registration offers it.
type kindAndType struct{ kind, extensionType string }

// registered returns what registrations offer.
func registered(registrations []*corev1beta1.ControllerRegistration) map[kindAndType]corev1beta1.ControllerResource {
	offered := map[kindAndType]corev1beta1.ControllerResource{}
	for _, registration := range registrations {
		if registration.DeletionTimestamp != nil {
			continue
		}
		for _, resource := range registration.Spec.Resources {
			offered[kindAndType{resource.Kind, resource.Type}] = resource
		}
	}
	return offered
}

// typesOf returns the types of a kind that are offered, sorted.
func typesOf(offered map[kindAndType]corev1beta1.ControllerResource, kind string) []string {
	var types []string
	for extension := range offered {
		if extension.kind == kind {
			types = append(types, extension.extensionType)
		}
	}
	slices.Sort(types)
	return types
}
