package v1beta1

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Ranges that shoots get when neither they nor their seed say otherwise.
const (
	DefaultPodNetworkCIDR     = "100.96.0.0/11"
	DefaultServiceNetworkCIDR = "100.64.0.0/13"
)

// SetDefaultsSeed sets what a Seed has when nothing is said.
func SetDefaultsSeed(seed *Seed) { SetDefaultsSeedSpec(&seed.Spec) }

// SetDefaultsSeedSpec is SetDefaultsSeed for a specification, wherever it is written.
func SetDefaultsSeedSpec(spec *SeedSpec) {
	networks := &spec.Networks
	if len(networks.IPFamilies) == 0 {
		networks.IPFamilies = []IPFamily{IPFamilyIPv4}
	}
	if networks.IPFamilies[0] == IPFamilyIPv4 {
		setDefaultsShootNetworks(networks)
	}
	settings := setBlock(&spec.Settings)
	setDefaultsExcessCapacity(setBlock(&settings.ExcessCapacityReservation))
	if settings.Scheduling == nil {
		settings.Scheduling = &SeedSettingScheduling{Visible: true}
	}
	setDefaultsLoadBalancerServices(setBlock(&settings.LoadBalancerServices))
	// The published default turns it on; it is off because it is not offered.
	setBlock(&settings.VerticalPodAutoscaler)
	setDefaultsDependencyWatchdog(setBlock(&settings.DependencyWatchdog))
	setBlock(&settings.TopologyAwareRouting)
	setBlock(&settings.PersistentVolumeClaimAutoscaler)
}

func setDefaultsDependencyWatchdog(watchdog *SeedSettingDependencyWatchdog) {
	if watchdog.Weeder == nil {
		watchdog.Weeder = &SeedSettingDependencyWatchdogWeeder{Enabled: true}
	}
	if watchdog.Prober == nil {
		watchdog.Prober = &SeedSettingDependencyWatchdogProber{Enabled: true}
	}
}

// setDefaultsShootNetworks sets the published default ranges where the seed's own do not overlap with them.
func setDefaultsShootNetworks(networks *SeedNetworks) {
	defaults := setBlock(&networks.ShootDefaults)
	if defaults.Pods == nil && isFree(networks, DefaultPodNetworkCIDR) {
		setDefault(&defaults.Pods, DefaultPodNetworkCIDR)
	}
	if defaults.Services == nil && isFree(networks, DefaultServiceNetworkCIDR) {
		setDefault(&defaults.Services, DefaultServiceNetworkCIDR)
	}
}

// isFree tells whether no range of the seed or of its shoots overlaps with the wanted one.
func isFree(networks *SeedNetworks, wanted string) bool {
	ranges := namedRanges{
		{nil, &networks.Pods}, {nil, &networks.Services}, {nil, networks.Nodes}, {nil, networks.ShootDefaults.Pods},
		{nil, networks.ShootDefaults.Services},
	}
	for _, used := range ranges {
		if prefix, ok := used.prefix(); ok && prefix.Overlaps(netip.MustParsePrefix(wanted)) {
			return false
		}
	}
	return true
}

func setDefaultsExcessCapacity(reservation *SeedSettingExcessCapacityReservation) {
	setDefault(&reservation.Enabled, true)
	if *reservation.Enabled && len(reservation.Configs) == 0 {
		reservation.Configs = []SeedSettingExcessCapacityReservationConfig{{Resources: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("6Gi"),
		}}}
	}
}

func setDefaultsLoadBalancerServices(services *SeedSettingLoadBalancerServices) {
	setDefault(&services.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	for i := range services.Zones {
		setDefault(&services.Zones[i].ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
}
