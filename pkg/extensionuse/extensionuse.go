// Package extensionuse tells which extensions shoots and seeds ask for. Admission checks that they are offered, and
// garden-controller-manager that they are installed: both must see the same.
package extensionuse

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// KindType is one kind of extension object of one type, such as Worker/local, as registrations offer it.
type KindType struct{ Kind, Type string }

// Use is an extension that an object asks for, and the field that does.
type Use struct {
	KindType
	Path *field.Path
}

func use(kind, extensionType string, path *field.Path) Use {
	return Use{KindType{kind, extensionType}, path}
}

// OfShoot returns what a shoot asks for, in the order of its fields.
func OfShoot(shoot *gardencorev1beta1.Shoot) []Use {
	spec := field.NewPath("spec")
	var uses []Use
	if shoot.Spec.DNS != nil {
		for i, provider := range shoot.Spec.DNS.Providers {
			if name := ptr.Deref(provider.Type, ""); name != "" && name != gardencorev1beta1.DNSUnmanaged {
				uses = append(uses, use(extensionsv1alpha1.DNSRecordResource, name,
					spec.Child("dns", "providers").Index(i).Child("type")))
			}
		}
	}
	uses = append(uses, listed(shoot.Spec.Extensions, spec.Child("extensions"))...)
	if gardencorev1beta1.IsWorkerless(shoot) {
		return uses
	}
	if shoot.Spec.Networking != nil && ptr.Deref(shoot.Spec.Networking.Type, "") != "" {
		uses = append(uses, use(extensionsv1alpha1.NetworkResource, *shoot.Spec.Networking.Type,
			spec.Child("networking", "type")))
	}
	provider := spec.Child("provider")
	for _, kind := range []string{
		extensionsv1alpha1.ControlPlaneResource, extensionsv1alpha1.InfrastructureResource,
		extensionsv1alpha1.WorkerResource,
	} {
		uses = append(uses, use(kind, shoot.Spec.Provider.Type, provider.Child("type")))
	}
	for i := range shoot.Spec.Provider.Workers {
		uses = append(uses, ofWorker(&shoot.Spec.Provider.Workers[i], provider.Child("workers").Index(i))...)
	}
	return uses
}

func listed(extensions []gardencorev1beta1.Extension, path *field.Path) []Use {
	var uses []Use
	for i, extension := range extensions {
		if !ptr.Deref(extension.Disabled, false) {
			uses = append(uses, use(extensionsv1alpha1.ExtensionResource, extension.Type, path.Index(i).Child("type")))
		}
	}
	return uses
}

func ofWorker(worker *gardencorev1beta1.Worker, path *field.Path) []Use {
	var uses []Use
	if worker.Machine.Image != nil {
		uses = append(uses, use(extensionsv1alpha1.OperatingSystemConfigResource, worker.Machine.Image.Name,
			path.Child("machine", "image", "name")))
	}
	if worker.CRI != nil {
		for i, runtime := range worker.CRI.ContainerRuntimes {
			uses = append(uses, use(extensionsv1alpha1.ContainerRuntimeResource, runtime.Type,
				path.Child("cri", "containerRuntimes").Index(i).Child("type")))
		}
	}
	return uses
}

// OfSeed returns what a seed asks for itself.
func OfSeed(seed *gardencorev1beta1.Seed) []Use {
	spec := field.NewPath("spec")
	uses := []Use{use(extensionsv1alpha1.ControlPlaneResource, seed.Spec.Provider.Type, spec.Child("provider", "type"))}
	if seed.Spec.Backup != nil {
		for _, kind := range []string{extensionsv1alpha1.BackupBucketResource, extensionsv1alpha1.BackupEntryResource} {
			uses = append(uses, use(kind, seed.Spec.Backup.Provider, spec.Child("backup", "provider")))
		}
	}
	dns := spec.Child("dns")
	if seed.Spec.DNS.Provider != nil {
		uses = append(uses, use(extensionsv1alpha1.DNSRecordResource, seed.Spec.DNS.Provider.Type,
			dns.Child("provider", "type")))
	}
	if seed.Spec.DNS.Internal != nil {
		uses = append(uses, use(extensionsv1alpha1.DNSRecordResource, seed.Spec.DNS.Internal.Type,
			dns.Child("internal", "type")))
	}
	for i, provider := range seed.Spec.DNS.Defaults {
		uses = append(uses, use(extensionsv1alpha1.DNSRecordResource, provider.Type,
			dns.Child("defaults").Index(i).Child("type")))
	}
	return append(uses, listed(seed.Spec.Extensions, spec.Child("extensions"))...)
}
