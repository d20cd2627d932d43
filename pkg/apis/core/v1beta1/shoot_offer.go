package v1beta1

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// notOfferedToShoots refuses what a Shoot cannot have.
func notOfferedToShoots(spec *ShootSpec, path *field.Path) field.ErrorList {
	errs := addonsNotOffered(spec.Addons, path.Child("addons"))
	errs = append(errs, refuseIf(len(deref(deref(spec.Monitoring).Alerting).EmailReceivers) > 0,
		path.Child("monitoring", "alerting", "emailReceivers"),
		"no monitoring stack runs beside control planes that could send mail",
		"let a monitoring of your own watch the cluster and its Shoot's status.conditions")...)
	rotation := deref(deref(deref(spec.Maintenance).AutoRotation).Credentials).Observability
	// Shoots of others have the default of the published API, which asks for nothing.
	period := deref(deref(rotation).RotationPeriod).Duration
	errs = append(errs, refuseIf(period > 0 && period != DefaultRotationPeriod,
		path.Child("maintenance", "autoRotation", "credentials", "observability", "rotationPeriod"),
		"control planes have no observability components with credentials of their own",
		"leave it out or set it to 0s")...)
	errs = append(errs, dnsNotOffered(spec.DNS, path.Child("dns", "providers"))...)
	errs = append(errs, refuseIf(slices.Contains(deref(spec.Networking).IPFamilies, IPFamilyIPv6),
		path.Child("networking", "ipFamilies"),
		"networks of clusters are IPv4", "leave the field out")...)
	errs = append(errs, nodeLocalDNSNotOffered(deref(spec.SystemComponents).NodeLocalDNS,
		path.Child("systemComponents", "nodeLocalDNS"))...)
	errs = append(errs, refuseIf(deref(deref(deref(spec.SystemComponents).CoreDNS).Autoscaling).Mode ==
		CoreDNSAutoscalingModeHorizontal,
		path.Child("systemComponents", "coreDNS", "autoscaling", "mode"),
		"CoreDNS is scaled by the size of the cluster only",
		"use "+string(CoreDNSAutoscalingModeClusterProportional))...)
	errs = append(errs, refuseIf(deref(spec.Kubernetes.VerticalPodAutoscaler).Enabled,
		path.Child("kubernetes", "verticalPodAutoscaler", "enabled"),
		"clusters come without a vertical pod autoscaler",
		"set it to false, and install the chart vertical-pod-autoscaler with Helm")...)
	for i := range spec.Provider.Workers {
		errs = append(errs, workerNotOffered(&spec.Provider.Workers[i], path.Child("provider", "workers").Index(i))...)
	}
	return errs
}

func addonsNotOffered(addons *Addons, path *field.Path) field.ErrorList {
	const why = "clusters come without addons"
	errs := refuseIf(deref(deref(addons).KubernetesDashboard).Enabled, path.Child("kubernetesDashboard", "enabled"),
		why,
		"install the chart kubernetes-dashboard with Helm")
	return append(errs, refuseIf(deref(deref(addons).NginxIngress).Enabled, path.Child("nginxIngress", "enabled"), why,
		"install the chart ingress-nginx, or that of another ingress controller, with Helm")...)
}

// dnsNotOffered: the records of a cluster's API server are made by one provider for one domain.
func dnsNotOffered(dns *DNS, path *field.Path) field.ErrorList {
	if dns == nil {
		return nil
	}
	var errs field.ErrorList
	for i := range dns.Providers {
		provider, at := &dns.Providers[i], path.Index(i)
		const instead = "leave it out, and use a DNS controller in the cluster for other names"
		errs = append(errs, refuseIf(hasMembers(provider.Domains), at.Child("domains"),
			"a provider serves spec.dns.domain only", instead)...)
		errs = append(errs, refuseIf(hasMembers(provider.Zones), at.Child("zones"),
			"the provider finds the hosted zone of spec.dns.domain itself", instead)...)
		errs = append(errs, refuseIf(provider.Primary != nil && !*provider.Primary && len(dns.Providers) > 1,
			at.Child("primary"),
			"only the primary provider is used",
			"remove this provider, and use a DNS controller in the cluster for other names")...)
	}
	return errs
}

func hasMembers(set *DNSIncludeExclude) bool {
	return set != nil && len(set.Include)+len(set.Exclude) > 0
}

func nodeLocalDNSNotOffered(dns *NodeLocalDNS, path *field.Path) field.ErrorList {
	return refuseIf(deref(dns).Enabled, path.Child("enabled"), "nodes have no DNS cache of their own",
		"install node-local-dns with Helm")
}

func workerNotOffered(worker *Worker, path *field.Path) field.ErrorList {
	errs := refuseIf(worker.ControlPlane != nil, path.Child("controlPlane"),
		"control planes run in seeds, not on machines of the cluster", "leave it out")
	errs = append(errs, refuseIf(!IsUpdatedInPlace(worker) &&
		deref(worker.MachineControllerManager).InPlaceUpdateTimeout != nil,
		path.Child("machineControllerManager", "inPlaceUpdateTimeout"),
		"machines of this pool are replaced when they have to change", "leave it out")...)
	return append(errs, refuseIf(worker.KubeletDataVolumeName != nil, path.Child("kubeletDataVolumeName"),
		"images and pods are on the root volume", "leave it out and make volume.size larger")...)
}
