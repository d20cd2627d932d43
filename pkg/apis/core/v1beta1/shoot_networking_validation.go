package v1beta1

import (
	"fmt"
	"math/bits"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Ranges that the parts of Trellis use inside every shoot.
const (
	// ReservedVPNRange holds the IPv4 addresses inside the tunnel between seed and shoot.
	ReservedVPNRange = "192.168.123.0/24"
	// ReservedVPNRangeIPv6 holds the IPv6 addresses inside the tunnel.
	ReservedVPNRangeIPv6 = "fd8f:6d53:b97a:1::/96"
	// ReservedAdvertiseRange holds the address under which pods reach the API server.
	ReservedAdvertiseRange = "240.0.0.0/8"
)

const (
	// kube-apiserver refuses service ranges with more addresses; IPv6 ranges likewise.
	maxServiceHostBits = 20
	// fewer addresses would not do for the services that every cluster has.
	minServiceHostBits = 4
	// kube-controller-manager refuses to split the range of pods into more than 2^16 ranges of nodes.
	maxNodeRangeBits = 16
	// defaultMaxPods is the kubelet's.
	defaultMaxPods int32 = 110
	// defaultNodeCIDRMaskSize and its IPv6 sibling are the published defaults.
	defaultNodeCIDRMaskSize     int32 = 24
	defaultNodeCIDRMaskSizeIPv6 int32 = 64
)

func validateNetworking(spec *ShootSpec, path *field.Path) field.ErrorList {
	networking := spec.Networking
	workerless := len(spec.Provider.Workers) == 0
	if networking == nil {
		if workerless {
			return nil
		}
		return field.ErrorList{
			field.Required(path, "a cluster with workers needs a network plugin: name its type, such as flannel"),
		}
	}
	var errs field.ErrorList
	if !workerless {
		errs = append(errs, validateRequired(deref(networking.Type), path.Child("type"),
			"name the network plugin, such as flannel")...)
	}
	errs = append(errs, validateIPFamilies(networking.IPFamilies, path.Child("ipFamilies"))...)
	ranges := namedRanges{
		{path.Child("nodes"), networking.Nodes}, {path.Child("pods"), networking.Pods},
		{path.Child("services"), networking.Services},
	}
	errs = append(errs, ranges.validate()...)
	errs = append(errs, ranges.validateFamily(networking.IPFamilies)...)
	errs = append(errs, ranges.validateDisjoint()...)
	errs = append(errs, validateNotReserved(ranges)...)
	errs = append(errs, validateServiceRange(ranges[2])...)
	return append(errs, validateNodeRanges(spec, ranges[1])...)
}

func validateNotReserved(ranges namedRanges) field.ErrorList {
	var errs field.ErrorList
	for _, reserved := range []string{ReservedVPNRange, ReservedVPNRangeIPv6, ReservedAdvertiseRange} {
		for _, one := range ranges {
			if prefix, ok := one.prefix(); ok && prefix.Overlaps(netip.MustParsePrefix(reserved)) {
				errs = append(errs, field.Invalid(one.path, *one.cidr,
					fmt.Sprintf("overlaps with %s, which Trellis uses in every cluster", reserved)))
			}
		}
	}
	return errs
}

func validateServiceRange(services namedRange) field.ErrorList {
	prefix, ok := services.prefix()
	if !ok {
		return nil
	}
	all := prefix.Addr().BitLen()
	if host := all - prefix.Bits(); host > maxServiceHostBits || host < minServiceHostBits {
		return field.ErrorList{
			field.Invalid(services.path, *services.cidr,
				fmt.Sprintf("must have a prefix length between %d and %d", all-maxServiceHostBits,
					all-minServiceHostBits)),
		}
	}
	return nil
}

// validateNodeRanges checks that the range of pods can be split into ranges for nodes.
func validateNodeRanges(spec *ShootSpec, pods namedRange) field.ErrorList {
	manager := spec.Kubernetes.KubeControllerManager
	prefix, ok := pods.prefix()
	if manager == nil || manager.NodeCIDRMaskSize == nil || len(spec.Provider.Workers) == 0 {
		return nil
	}
	size := *manager.NodeCIDRMaskSize
	path := field.NewPath("spec", "kubernetes", "kubeControllerManager", "nodeCIDRMaskSize")
	var errs field.ErrorList
	if ok {
		least := prefix.Bits()
		errs = append(errs, validateBetween(int(size), least, min(least+maxNodeRangeBits, prefix.Addr().BitLen()),
			path)...)
	}
	if ok && !prefix.Addr().Is4() {
		return errs
	}
	if needed := maskSizeFor(maxPodsOf(spec)); size > needed {
		errs = append(errs, field.Invalid(path, size,
			fmt.Sprintf("must be at most %d for %d pods on a node", needed, maxPodsOf(spec))))
	}
	return errs
}

// maxPodsOf returns the largest number of pods that a node of the cluster may have.
func maxPodsOf(spec *ShootSpec) int32 {
	most := int32(0)
	if kubelet := spec.Kubernetes.Kubelet; kubelet != nil && kubelet.MaxPods != nil {
		most = *kubelet.MaxPods
	}
	for _, worker := range spec.Provider.Workers {
		if worker.Kubernetes != nil && worker.Kubernetes.Kubelet != nil && worker.Kubernetes.Kubelet.MaxPods != nil {
			most = max(most, *worker.Kubernetes.Kubelet.MaxPods)
		}
	}
	if most <= 0 {
		return defaultMaxPods
	}
	return most
}

// maskSizeFor returns the longest prefix whose range has an address for each of the pods, one for the network and one
// for the bridge.
func maskSizeFor(pods int32) int32 {
	return int32(32 - bits.Len32(uint32(pods)+1))
}

func validateNetworkingUpdate(networking, old *Networking, path *field.Path) field.ErrorList {
	if old == nil {
		return nil
	}
	if networking == nil {
		networking = &Networking{}
	}
	errs := validateImmutableOnceSet(networking.Type, old.Type, path.Child("type"))
	errs = append(errs, validateImmutableOnceSet(networking.Pods, old.Pods, path.Child("pods"))...)
	errs = append(errs, validateImmutableOnceSet(networking.Services, old.Services, path.Child("services"))...)
	errs = append(errs, validateImmutableOnceSet(networking.Nodes, old.Nodes, path.Child("nodes"))...)
	return append(errs, validateIPFamiliesUpdate(networking.IPFamilies, old.IPFamilies, path.Child("ipFamilies"))...)
}

// validateIPFamiliesUpdate allows IPv4 to become dual-stack and back.
func validateIPFamiliesUpdate(families, old []IPFamily, path *field.Path) field.ErrorList {
	if len(old) == 0 || len(families) > 0 && len(old) > 0 && families[0] == IPFamilyIPv4 && old[0] == IPFamilyIPv4 {
		return nil
	}
	return validateImmutable(families, old, path)
}
