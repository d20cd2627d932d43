package admission

import (
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"

	"github.com/trellis-garden/trellis/pkg/extensionuse"

	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

// ExtensionLabelsName is the name of the plugin that labels objects with the extensions they use.
const ExtensionLabelsName = "ExtensionLabels"

// Prefixes of labels, besides those in the API: followed by a type, they mark objects that use an extension of it.
const (
	labelPrefixOperatingSystem  = "operatingsystemconfig.extensions.gardener.cloud/"
	labelPrefixContainerRuntime = "containerruntime.extensions.gardener.cloud/"
	labelPrefixDNSRecord        = "dnsrecord.extensions.gardener.cloud/"
)

// labelPrefixes are the labels by kind of extension. Infrastructure, control plane, workers and backups come from
// providers.
var labelPrefixes = map[string]string{
	extensionsv1alpha1.BackupBucketResource:          gardencorev1beta1.LabelExtensionProviderTypePrefix,
	extensionsv1alpha1.BackupEntryResource:           gardencorev1beta1.LabelExtensionProviderTypePrefix,
	extensionsv1alpha1.ContainerRuntimeResource:      labelPrefixContainerRuntime,
	extensionsv1alpha1.ControlPlaneResource:          gardencorev1beta1.LabelExtensionProviderTypePrefix,
	extensionsv1alpha1.DNSRecordResource:             labelPrefixDNSRecord,
	extensionsv1alpha1.ExtensionResource:             gardencorev1beta1.LabelExtensionExtensionTypePrefix,
	extensionsv1alpha1.InfrastructureResource:        gardencorev1beta1.LabelExtensionProviderTypePrefix,
	extensionsv1alpha1.NetworkResource:               gardencorev1beta1.LabelExtensionNetworkingTypePrefix,
	extensionsv1alpha1.OperatingSystemConfigResource: labelPrefixOperatingSystem,
	extensionsv1alpha1.WorkerResource:                gardencorev1beta1.LabelExtensionProviderTypePrefix,
}

// extensionLabels lets extensions' webhooks select the objects that concern them, by labels such as
// provider.extensions.gardener.cloud/local=true.
type extensionLabels struct {
	*admission.Handler
	dependent
}

var _ admission.MutationInterface = &extensionLabels{}

func newExtensionLabels() *extensionLabels {
	return &extensionLabels{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Admit implements admission.MutationInterface.
func (e *extensionLabels) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	object, ok := a.GetObject().(metav1.Object)
	if !ok || a.GetSubresource() != "" {
		return nil
	}
	wanted, labelled, err := e.labels(ctx, a.GetObject())
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if labelled {
		setExtensionLabels(object, wanted)
	}
	return nil
}

// labels returns the labels that an object should have, and whether its kind is labelled at all.
func (e *extensionLabels) labels(ctx context.Context, obj runtime.Object) (sets.Set[string], bool, error) {
	profile, ok := obj.(*gardencorev1beta1.NamespacedCloudProfile)
	if !ok {
		wanted, labelled := extensionLabelsOf(obj)
		return wanted, labelled, nil
	}
	parent, err := get[*gardencorev1beta1.CloudProfile](ctx, e.Reader, gardencorev1beta1.Resource("cloudprofiles"), "",
		profile.Spec.Parent.Name)
	if isMissing(err) {
		return nil, false, nil // refused by ResourceReferenceManager
	}
	if err != nil {
		return nil, false, err
	}
	wanted, labelled := extensionLabelsOf(parent)
	return wanted, labelled, nil
}

// extensionLabelsOf returns the labels that follow from an object alone.
func extensionLabelsOf(obj runtime.Object) (wanted sets.Set[string], labelled bool) {
	switch object := obj.(type) {
	case *gardencorev1beta1.Shoot:
		return labelsFor(extensionuse.OfShoot(object)).Insert(providerLabels(object.Spec.Provider.Type)...), true
	case *gardencorev1beta1.Seed:
		return labelsFor(extensionuse.OfSeed(object)), true
	case *gardencorev1beta1.CloudProfile:
		return sets.New(providerLabels(object.Spec.Type)...), true
	case *gardencorev1beta1.BackupBucket:
		return sets.New(providerLabels(object.Spec.Provider.Type)...), true
	case *gardencorev1beta1.SecretBinding:
		return sets.New(providerLabels(secretBindingType(object))...), true
	case *securityv1alpha1.CredentialsBinding:
		return sets.New(providerLabels(object.Provider.Type)...), true
	case *securityv1alpha1.WorkloadIdentity:
		return sets.New(providerLabels(object.Spec.TargetSystem.Type)...), true
	}
	return nil, false
}

func labelsFor(uses []extensionuse.Use) sets.Set[string] {
	labels := sets.New[string]()
	for _, use := range uses {
		if prefix, ok := labelPrefixes[use.Kind]; ok && use.Type != "" {
			labels.Insert(prefix + use.Type)
		}
	}
	return labels
}

// providerLabels returns the labels of providers that are given separated by commas.
func providerLabels(providers string) []string {
	var labels []string
	for _, provider := range strings.Split(providers, ",") {
		if provider = strings.TrimSpace(provider); provider != "" {
			labels = append(labels, gardencorev1beta1.LabelExtensionProviderTypePrefix+provider)
		}
	}
	return labels
}

// setExtensionLabels adds the wanted labels, and removes those of extensions that are no longer used.
func setExtensionLabels(object metav1.Object, wanted sets.Set[string]) {
	labels := object.GetLabels()
	for label := range labels {
		if isExtensionLabel(label) && !wanted.Has(label) {
			delete(labels, label)
		}
	}
	if len(wanted) > 0 && labels == nil {
		labels = map[string]string{}
	}
	for label := range wanted {
		labels[label] = "true"
	}
	object.SetLabels(labels)
}

func isExtensionLabel(label string) bool {
	for _, prefix := range labelPrefixes {
		if strings.HasPrefix(label, prefix) {
			return true
		}
	}
	return false
}
