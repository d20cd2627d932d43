package v1beta1

import (
	"fmt"
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// AdaptToKubernetesVersion changes a specification so that validation does not refuse it for its version of Kubernetes:
// what the version does not have any more is dropped, or moved to the field that took its place. It returns what it
// did, for people. What nobody can decide for the owner stays, and validation goes on to refuse it.
func AdaptToKubernetesVersion(spec *ShootSpec) (changes []string) {
	path := field.NewPath("spec")
	kubernetes := path.Child("kubernetes")
	changes = dropRemovedFields(spec, path)
	changes = append(changes, dropFromComponents(&spec.Kubernetes, kubernetes)...)
	for i := range spec.Provider.Workers {
		if own := spec.Provider.Workers[i].Kubernetes; own != nil && own.Kubelet != nil {
			version := deref(own.Version)
			if version == "" {
				version = spec.Kubernetes.Version
			}
			at := path.Child("provider", "workers").Index(i).Child("kubernetes", "kubelet", "featureGates")
			changes = append(changes, dropFeatureGates(own.Kubelet.FeatureGates, version, at)...)
		}
	}
	return changes
}

// dropRemovedFields empties the fields that went away with the version.
func dropRemovedFields(spec *ShootSpec, path *field.Path) (changes []string) {
	minor, ok := minorOf(spec.Kubernetes.Version)
	for _, one := range append(removedFields(spec, path),
		removedKubernetesFields(&spec.Kubernetes, path.Child("kubernetes"))...) {
		if !ok || !one.set || minor < one.minor || one.drop == nil {
			continue
		}
		one.drop()
		changes = append(changes, fmt.Sprintf("%s dropped, which Kubernetes 1.%d does not have any more (%s)", one.path,
			one.minor, one.replacement))
	}
	return changes
}

// dropFromComponents removes feature gates and admission plugins that the components of the version do not know.
func dropFromComponents(kubernetes *Kubernetes, path *field.Path) (changes []string) {
	version := kubernetes.Version
	gates := func(set map[string]bool, component string) {
		changes = append(changes, dropFeatureGates(set, version, path.Child(component, "featureGates"))...)
	}
	if config := kubernetes.KubeAPIServer; config != nil {
		gates(config.FeatureGates, "kubeAPIServer")
		changes = append(changes, dropAdmissionPlugins(config, version,
			path.Child("kubeAPIServer", "admissionPlugins"))...)
	}
	if config := kubernetes.KubeControllerManager; config != nil {
		gates(config.FeatureGates, "kubeControllerManager")
	}
	if config := kubernetes.KubeScheduler; config != nil {
		gates(config.FeatureGates, "kubeScheduler")
	}
	if config := kubernetes.KubeProxy; config != nil {
		gates(config.FeatureGates, "kubeProxy")
	}
	if config := kubernetes.Kubelet; config != nil {
		gates(config.FeatureGates, "kubelet")
	}
	return changes
}

// dropFeatureGates removes the gates that the version does not know, or that cannot have their value.
func dropFeatureGates(gates map[string]bool, version string, path *field.Path) (changes []string) {
	minor, ok := minorOf(version)
	if !ok {
		return nil
	}
	for _, name := range sortedKeys(gates) {
		if problem := featureGateProblem(name, gates[name], minor); problem != "" {
			delete(gates, name)
			changes = append(changes, fmt.Sprintf("%s dropped, which %s", path.Key(name), problem))
		}
	}
	return changes
}

// dropAdmissionPlugins removes the plugins that the version does not have.
func dropAdmissionPlugins(config *KubeAPIServerConfig, version string, path *field.Path) (changes []string) {
	minor, ok := minorOf(version)
	if !ok {
		return nil
	}
	config.AdmissionPlugins = slices.DeleteFunc(config.AdmissionPlugins, func(plugin AdmissionPlugin) bool {
		problem := unknownPluginProblem(plugin.Name, minor)
		if problem != "" {
			changes = append(changes, fmt.Sprintf("%s dropped, which %s", path.Key(plugin.Name), problem))
		}
		return problem != ""
	})
	return changes
}

// adoptCloudProfile moves the name of the cloud profile to where it is now.
func adoptCloudProfile(spec *ShootSpec) {
	if spec.CloudProfile == nil {
		spec.CloudProfile = &CloudProfileReference{
			Kind: CloudProfileReferenceKindCloudProfile, Name: *spec.CloudProfileName,
		}
	}
	spec.CloudProfileName = nil
}

// adoptParallelism moves the number of empty nodes that are removed at a time to where it is now.
func adoptParallelism(config *ClusterAutoscaler) {
	if config.MaxScaleDownParallelism == nil {
		config.MaxScaleDownParallelism = config.MaxEmptyBulkDelete
	}
	config.MaxEmptyBulkDelete = nil
}

// adoptSecret moves the name of the Secret with a DNS provider's credentials to where it is now.
func (p *DNSProvider) adoptSecret() {
	if p.CredentialsRef == nil {
		p.CredentialsRef = &autoscalingv1.CrossVersionObjectReference{
			APIVersion: "v1", Kind: "Secret", Name: *p.SecretName,
		}
	}
	p.SecretName = nil
}
