package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// notOfferedToSeeds refuses what a Seed cannot have.
func notOfferedToSeeds(spec *SeedSpec, path *field.Path) field.ErrorList {
	settings, at := deref(spec.Settings), path.Child("settings")
	errs := balancersNotOffered(settings.LoadBalancerServices, at.Child("loadBalancerServices"))
	autoscaler := deref(settings.VerticalPodAutoscaler)
	errs = append(errs, refuseIf(autoscaler.Enabled, at.Child("verticalPodAutoscaler", "enabled"),
		"requests of control planes are fixed",
		"set it to false, and install a VerticalPodAutoscaler in the seed yourself if you want recommendations")...)
	errs = append(errs, refuseIf(len(autoscaler.FeatureGates) > 0, at.Child("verticalPodAutoscaler", "featureGates"),
		"no VerticalPodAutoscaler is installed in seeds", "leave it out")...)
	errs = append(errs, refuseIf(len(autoscaler.MaxAllowed) > 0, at.Child("verticalPodAutoscaler", "maxAllowed"),
		"no VerticalPodAutoscaler is installed in seeds", "leave it out")...)
	errs = append(errs, refuseIf(deref(settings.PersistentVolumeClaimAutoscaler).Enabled,
		at.Child("persistentVolumeClaimAutoscaler", "enabled"),
		"volumes of etcds keep their size",
		"set it to false, and set spec.volume.minimumSize where the default is too small")...)
	errs = append(errs, refuseIf(len(deref(spec.Volume).Providers) > 0, path.Child("volume", "providers"),
		"volumes are of the seed's default storage class",
		"make the storage class that etcds shall have the default one")...)
	errs = append(errs, refuseIf(deref(deref(spec.Backup).CredentialsRef).Kind == "WorkloadIdentity",
		path.Child("backup", "credentialsRef"), "no tokens are requested for buckets", "refer to a Secret")...)
	errs = append(errs, refuseIf(deref(spec.Ingress).Controller.ProviderConfig != nil,
		path.Child("ingress", "controller", "providerConfig"),
		"the seed's gateway is installed by its operator", "configure the gateway where it is installed")...)
	return errs
}

// balancersNotOffered: the one service of type LoadBalancer that a seed needs is that of its gateway.
func balancersNotOffered(services *SeedSettingLoadBalancerServices, path *field.Path) field.ErrorList {
	const (
		why     = "the seed's gateway and its service are installed by the seed's operator"
		instead = "configure that service, and leave this out"
	)
	s := deref(services)
	errs := refuseIf(len(s.Annotations) > 0, path.Child("annotations"), why, instead)
	errs = append(errs, refuseIf(deref(s.ExternalTrafficPolicy) == corev1.ServiceExternalTrafficPolicyLocal,
		path.Child("externalTrafficPolicy"), why, instead)...)
	errs = append(errs, refuseIf(len(s.Zones) > 0, path.Child("zones"), why, instead)...)
	errs = append(errs, refuseIf(deref(s.ProxyProtocol).Allowed, path.Child("proxyProtocol", "allowed"), why,
		instead)...)
	errs = append(errs, refuseIf(deref(deref(s.ZonalIngress).Enabled), path.Child("zonalIngress", "enabled"),
		"a seed has one gateway for all its zones", "set it to false or leave it out")...)
	return append(errs, refuseIf(s.Class != nil, path.Child("class"), why, instead)...)
}
