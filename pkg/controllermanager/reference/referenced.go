package reference

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Kinds of objects that are protected.
const (
	kindSecret    = "Secret"
	kindConfigMap = "ConfigMap"
)

// Object is a Secret or ConfigMap of a namespace.
type Object struct{ Kind, Name string }

// ByShoot returns the objects of its namespace that a shoot refers to.
func ByShoot(shoot *gardencorev1beta1.Shoot) sets.Set[Object] {
	found := byResources(shoot.Spec.Resources)
	if shoot.Spec.DNS != nil {
		for _, provider := range shoot.Spec.DNS.Providers {
			insert(found, kindSecret, ptr.Deref(provider.SecretName, ""))
			if provider.CredentialsRef != nil {
				insert(found, provider.CredentialsRef.Kind, provider.CredentialsRef.Name)
			}
		}
	}
	if shoot.Spec.Kubernetes.KubeAPIServer != nil {
		return found.Union(byAPIServer(shoot.Spec.Kubernetes.KubeAPIServer))
	}
	return found
}

func byAPIServer(config *gardencorev1beta1.KubeAPIServerConfig) sets.Set[Object] {
	found := sets.New[Object]()
	for _, plugin := range config.AdmissionPlugins {
		insert(found, kindSecret, ptr.Deref(plugin.KubeconfigSecretName, ""))
	}
	if audit := config.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		insert(found, kindConfigMap, audit.AuditPolicy.ConfigMapRef.Name)
	}
	if config.StructuredAuthentication != nil {
		insert(found, kindConfigMap, config.StructuredAuthentication.ConfigMapName)
	}
	if config.StructuredAuthorization != nil {
		insert(found, kindConfigMap, config.StructuredAuthorization.ConfigMapName)
		for _, kubeconfig := range config.StructuredAuthorization.Kubeconfigs {
			insert(found, kindSecret, kubeconfig.SecretName)
		}
	}
	return found
}

// BySeed returns the objects of a namespace that a seed refers to.
func BySeed(seed *gardencorev1beta1.Seed, namespace string) sets.Set[Object] {
	found := sets.New[Object]()
	if namespace == gardencorev1beta1.GardenNamespace {
		found = byResources(seed.Spec.Resources)
	}
	for _, reference := range credentialsOf(seed) {
		if reference.Namespace == namespace {
			insert(found, reference.Kind, reference.Name)
		}
	}
	return found
}

// credentialsOf returns the references of a seed to credentials, which may lie in any namespace.
func credentialsOf(seed *gardencorev1beta1.Seed) []corev1.ObjectReference {
	var found []corev1.ObjectReference
	if backup := seed.Spec.Backup; backup != nil && backup.CredentialsRef != nil {
		found = append(found, *backup.CredentialsRef)
	}
	if provider := seed.Spec.DNS.Provider; provider != nil && provider.CredentialsRef != nil {
		found = append(found, *provider.CredentialsRef)
	}
	if seed.Spec.DNS.Internal != nil {
		found = append(found, seed.Spec.DNS.Internal.CredentialsRef)
	}
	for _, domain := range seed.Spec.DNS.Defaults {
		found = append(found, domain.CredentialsRef)
	}
	return found
}

func byResources(resources []gardencorev1beta1.NamedResourceReference) sets.Set[Object] {
	found := sets.New[Object]()
	for _, resource := range resources {
		if resource.ResourceRef.APIVersion == "v1" {
			insert(found, resource.ResourceRef.Kind, resource.ResourceRef.Name)
		}
	}
	return found
}

// insert notes an object of a kind that is protected.
func insert(found sets.Set[Object], kind, name string) {
	if name != "" && (kind == kindSecret || kind == kindConfigMap) {
		found.Insert(Object{kind, name})
	}
}
