package scheduler

import (
	"net/netip"

	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// network is a range of addresses and what it is for.
type network struct{ use, cidr string }

// overlappingNetworks: pods of the seed reach the shoot's networks through the control plane's VPN, which translates no
// addresses for control planes with several replicas. Only those need networks apart from the seed's.
func (r *requirements) overlappingNetworks(seed *gardencorev1beta1.Seed) *Rejection {
	if !isHighlyAvailable(r.shoot) || r.shoot.Spec.Networking == nil {
		return nil
	}
	for _, ofShoot := range shootNetworks(r.shoot, seed.Spec.Networks.ShootDefaults) {
		for _, ofSeed := range seedNetworks(seed) {
			if overlap(ofShoot.cidr, ofSeed.cidr) {
				return rejection(Overlapping, "has network %s for %s, which overlaps the shoot's for %s %s",
					ofSeed.cidr, ofSeed.use, ofShoot.use, ofShoot.cidr)
			}
		}
	}
	return nil
}

func seedNetworks(seed *gardencorev1beta1.Seed) []network {
	networks := seed.Spec.Networks
	return []network{{"nodes", ptr.Deref(networks.Nodes, "")}, {"pods", networks.Pods}, {"services", networks.Services}}
}

// shootNetworks are the shoot's networks, including those that it would get from the seed.
func shootNetworks(shoot *gardencorev1beta1.Shoot, defaults *gardencorev1beta1.ShootNetworks) []network {
	own := shoot.Spec.Networking
	if defaults == nil {
		defaults = &gardencorev1beta1.ShootNetworks{}
	}
	services := network{"services", firstOf(own.Services, defaults.Services)}
	if gardencorev1beta1.IsWorkerless(shoot) {
		return []network{services}
	}
	return []network{{"nodes", ptr.Deref(own.Nodes, "")}, {"pods", firstOf(own.Pods, defaults.Pods)}, services}
}

func firstOf(values ...*string) string {
	for _, value := range values {
		if value != nil {
			return *value
		}
	}
	return ""
}

// overlap tells whether two CIDRs share addresses. What is no CIDR overlaps nothing.
func overlap(a, b string) bool {
	first, err := netip.ParsePrefix(a)
	if err != nil {
		return false
	}
	second, err := netip.ParsePrefix(b)
	return err == nil && first.Overlaps(second)
}
