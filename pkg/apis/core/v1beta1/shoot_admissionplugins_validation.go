package v1beta1

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// admissionPlugins are the admission plugins of kube-apiserver with the minor version of Kubernetes 1 from which on
// they exist.
var admissionPlugins = map[string]uint64{
	"AlwaysAdmit": 0, "AlwaysDeny": 0, "AlwaysPullImages": 0, "CertificateApproval": 0, "CertificateSigning": 0,
	"CertificateSubjectRestriction": 0, "ClusterTrustBundleAttest": 27, "DefaultIngressClass": 0,
	"DefaultStorageClass":      0,
	"DefaultTolerationSeconds": 0, "DenyServiceExternalIPs": 0, "EventRateLimit": 0, "ExtendedResourceToleration": 0,
	"ImagePolicyWebhook": 0,
	"JobValidation":      36, "LimitPodHardAntiAffinityTopology": 0, "LimitRanger": 0, "MutatingAdmissionPolicy": 32,
	"MutatingAdmissionWebhook": 0,
	"NamespaceAutoProvision":   0, "NamespaceExists": 0, "NamespaceLifecycle": 0, "NodeDeclaredFeatureValidator": 35,
	"NodeRestriction":                      0,
	"OwnerReferencesPermissionEnforcement": 0, "PersistentVolumeClaimResize": 0, "PodGroupProtection": 36,
	"PodGroupWorkloadExists": 36,
	"PodNodeSelector":        0, "PodResizeValidator": 36, "PodSecurity": 22, "PodTolerationRestriction": 0,
	"PodTopologyLabels": 33, "Priority": 0,
	"ResourceQuota": 0, "RuntimeClass": 0, "ServiceAccount": 0, "StorageObjectInUseProtection": 0,
	"TaintNodesByCondition":     0,
	"ValidatingAdmissionPolicy": 26, "ValidatingAdmissionWebhook": 0,
}

// requiredAdmissionPlugins keep a cluster secure and working.
var requiredAdmissionPlugins = sets.New(
	"CertificateApproval", "CertificateSigning", "CertificateSubjectRestriction", "MutatingAdmissionWebhook",
	"NamespaceLifecycle",
	"NodeRestriction", "Priority", "ServiceAccount", "ValidatingAdmissionWebhook",
)

// configurablePlugins read a configuration.
var configurablePlugins = sets.New(
	"EventRateLimit", "ImagePolicyWebhook", "MutatingAdmissionWebhook", "PodNodeSelector", "PodSecurity",
	"PodTolerationRestriction", "ResourceQuota",
	"ValidatingAdmissionWebhook",
)

// webhooksOfPlugins are the plugins that ask webhooks, with the field of their configuration that names a kubeconfig.
var webhooksOfPlugins = map[string][]string{
	"ImagePolicyWebhook":         {"imagePolicy", "kubeConfigFile"},
	"MutatingAdmissionWebhook":   {"kubeConfigFile"},
	"ValidatingAdmissionWebhook": {"kubeConfigFile"},
}

func validateAdmissionPlugins(plugins []AdmissionPlugin, version string, path *field.Path) field.ErrorList {
	name := func(i int) *field.Path { return path.Index(i).Child("name") }
	errs := validateUnique(plugins, func(p AdmissionPlugin) string { return p.Name }, name)
	for i, plugin := range plugins {
		if plugin.Name == "" {
			errs = append(errs, field.Required(name(i), "name the admission plugin"))
		} else if problem := admissionPluginProblem(&plugins[i], version); problem != "" {
			errs = append(errs, field.Invalid(name(i), plugin.Name, problem))
		}
		errs = append(errs, validatePluginSettings(&plugins[i], path.Index(i))...)
	}
	return errs
}

// validatePluginSettings refuses settings that the plugin does not read, and an enabled plugin that does not start
// without its own.
func validatePluginSettings(plugin *AdmissionPlugin, path *field.Path) field.ErrorList {
	if plugin.Name == "" {
		return nil
	}
	var errs field.ErrorList
	enabled := !deref(plugin.Disabled)
	kubeconfigField, asks := webhooksOfPlugins[plugin.Name]
	switch at := path.Child("kubeconfigSecretName"); {
	case plugin.KubeconfigSecretName != nil && !asks:
		errs = append(errs, field.Forbidden(at, plugin.Name+" asks no webhook; remove it"))
	case plugin.KubeconfigSecretName == nil && enabled && plugin.Name == "ImagePolicyWebhook":
		errs = append(errs, field.Required(at, "it starts only with a kubeconfig for its webhook"))
	}
	switch at := path.Child("config"); {
	case plugin.Config != nil && !configurablePlugins.Has(plugin.Name):
		errs = append(errs, field.Forbidden(at, plugin.Name+" takes no configuration; remove it"))
	case plugin.Config == nil && enabled && plugin.Name == "EventRateLimit":
		errs = append(errs, field.Required(at, "it starts only with a configuration that has limits"))
	case plugin.Config != nil:
		errs = append(errs, validatePluginConfig(plugin.Config.Raw, kubeconfigField, at)...)
	}
	return errs
}

// validatePluginConfig refuses what is no object, and one that names a file.
func validatePluginConfig(raw []byte, kubeconfigField []string, path *field.Path) field.ErrorList {
	content := map[string]any{}
	if err := json.Unmarshal(raw, &content); err != nil {
		return field.ErrorList{field.Invalid(path, string(raw), "must be an object: "+err.Error())}
	}
	if len(kubeconfigField) == 0 {
		return nil
	}
	if names(content, kubeconfigField[len(kubeconfigField)-1]) {
		return field.ErrorList{
			field.Forbidden(path.Child(kubeconfigField[0], kubeconfigField[1:]...),
				"names a file, which is not there; use kubeconfigSecretName"),
		}
	}
	return nil
}

// names tells whether a value has a field anywhere, in whatever case: some plugins read their configuration without
// regard to it.
func names(value any, wanted string) bool {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if strings.EqualFold(name, wanted) || names(inner, wanted) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(value, func(inner any) bool { return names(inner, wanted) })
	}
	return false
}

func admissionPluginProblem(plugin *AdmissionPlugin, version string) string {
	if minor, ok := minorOf(version); ok {
		if problem := unknownPluginProblem(plugin.Name, minor); problem != "" {
			return problem
		}
	}
	disabled := deref(plugin.Disabled)
	switch {
	case disabled && requiredAdmissionPlugins.Has(plugin.Name):
		return "cannot be disabled: clusters rely on it"
	case !disabled && plugin.Name == "AlwaysDeny":
		return "would refuse every change of the cluster; remove it"
	}
	return ""
}

// unknownPluginProblem tells why Kubernetes of the version has no such plugin.
func unknownPluginProblem(name string, minor uint64) string {
	since, known := admissionPlugins[name]
	switch {
	case !known && minor >= firstKnownGates && minor <= lastKnownGates:
		return fmt.Sprintf("is no admission plugin of Kubernetes 1.%d; remove it", minor)
	case since > minor:
		return fmt.Sprintf("exists from Kubernetes 1.%d on; remove it or update first", since)
	}
	return ""
}

// validateReferencedKubeconfigs checks that Secrets with kubeconfigs for admission plugins are among the shoot's
// resources, from which they are copied to the seed.
func validateReferencedKubeconfigs(spec *ShootSpec, path *field.Path) field.ErrorList {
	secrets := sets.New[string]()
	for _, resource := range spec.Resources {
		if resource.ResourceRef.Kind == "Secret" {
			secrets.Insert(resource.ResourceRef.Name)
		}
	}
	var errs field.ErrorList
	for i, plugin := range deref(spec.Kubernetes.KubeAPIServer).AdmissionPlugins {
		if name := plugin.KubeconfigSecretName; name != nil && !secrets.Has(*name) {
			at := path.Child("kubernetes", "kubeAPIServer", "admissionPlugins").Index(i).Child("kubeconfigSecretName")
			errs = append(errs, field.Invalid(at, *name, "must be the name of a Secret in spec.resources"))
		}
	}
	return errs
}
