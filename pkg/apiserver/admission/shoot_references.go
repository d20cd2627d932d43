package admission

import (
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

var (
	secretKind    = corev1.SchemeGroupVersion.WithKind("Secret")
	configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")
)

// referableKinds are the kinds of objects that others refer to, with their resources.
var referableKinds = map[schema.GroupKind]string{
	secretKind.GroupKind():                    "secrets",
	configMapKind.GroupKind():                 "configmaps",
	gardencorev1beta1.Kind("CloudProfile"):    "cloudprofiles",
	gardencorev1beta1.Kind("ExposureClass"):   "exposureclasses",
	gardencorev1beta1.Kind("InternalSecret"):  "internalsecrets",
	gardencorev1beta1.Kind("Quota"):           "quotas",
	securityv1alpha1.Kind("WorkloadIdentity"): "workloadidentities",
}

func referableKindNames() []string {
	var names []string
	for kind := range referableKinds {
		names = append(names, kind.Kind)
	}
	return slices.Sorted(slices.Values(names))
}

// referencesOfShoot returns what a shoot refers to, besides its cloud profile, credentials and seed, which
// ShootValidator knows more about. All of it lies in the shoot's namespace.
func referencesOfShoot(shoot *gardencorev1beta1.Shoot) []reference {
	c := &shootReferences{namespace: shoot.Namespace}
	spec := field.NewPath("spec")
	if name := ptr.Deref(shoot.Spec.ExposureClassName, ""); name != "" {
		c.found = append(c.found, reference{
			spec.Child("exposureClassName"), gardencorev1beta1.SchemeGroupVersion.WithKind("ExposureClass"), "", name,
			false,
		})
	}
	for i, resource := range shoot.Spec.Resources {
		c.addReference(spec.Child("resources").Index(i).Child("resourceRef"), resource.ResourceRef)
	}
	if shoot.Spec.DNS != nil {
		for i, provider := range shoot.Spec.DNS.Providers {
			path := spec.Child("dns", "providers").Index(i)
			if provider.CredentialsRef != nil {
				c.addReference(path.Child("credentialsRef"), *provider.CredentialsRef)
			} else {
				c.add(path.Child("secretName"), secretKind, ptr.Deref(provider.SecretName, ""))
			}
		}
	}
	if server := shoot.Spec.Kubernetes.KubeAPIServer; server != nil {
		c.addAPIServer(server, spec.Child("kubernetes", "kubeAPIServer"))
	}
	return c.found
}

// shootReferences collects references of a shoot.
type shootReferences struct {
	namespace string
	found     []reference
}

func (c *shootReferences) add(path *field.Path, kind schema.GroupVersionKind, name string) {
	if name != "" {
		c.found = append(c.found, reference{path, kind, c.namespace, name, true})
	}
}

func (c *shootReferences) addReference(path *field.Path, to autoscalingv1.CrossVersionObjectReference) {
	c.add(path, schema.FromAPIVersionAndKind(to.APIVersion, to.Kind), to.Name)
}

func (c *shootReferences) addAPIServer(server *gardencorev1beta1.KubeAPIServerConfig, path *field.Path) {
	if audit := server.AuditConfig; audit != nil && audit.AuditPolicy != nil && audit.AuditPolicy.ConfigMapRef != nil {
		c.add(path.Child("auditConfig", "auditPolicy", "configMapRef", "name"), configMapKind,
			audit.AuditPolicy.ConfigMapRef.Name)
	}
	if authentication := server.StructuredAuthentication; authentication != nil {
		c.add(path.Child("structuredAuthentication", "configMapName"), configMapKind, authentication.ConfigMapName)
	}
	if authorization := server.StructuredAuthorization; authorization != nil {
		at := path.Child("structuredAuthorization")
		c.add(at.Child("configMapName"), configMapKind, authorization.ConfigMapName)
		for i, kubeconfig := range authorization.Kubeconfigs {
			c.add(at.Child("kubeconfigs").Index(i).Child("secretName"), secretKind, kubeconfig.SecretName)
		}
	}
	for i, plugin := range server.AdmissionPlugins {
		c.add(path.Child("admissionPlugins").Index(i).Child("kubeconfigSecretName"), secretKind,
			ptr.Deref(plugin.KubeconfigSecretName, ""))
	}
}

// addedReferences returns the references that the old shoot (nil on creation) does not have, each once.
func addedReferences(references []reference, old *gardencorev1beta1.Shoot) []reference {
	known := map[string]bool{}
	if old != nil {
		for _, to := range referencesOfShoot(old) {
			known[to.key()] = true
		}
	}
	var added []reference
	for _, to := range references {
		if !known[to.key()] {
			known[to.key()] = true
			added = append(added, to)
		}
	}
	return added
}
