package scheduler

import (
	"fmt"
	"net/netip"

	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// overlappingNetworks: pods of the seed reach the shoot's networks through the control plane's VPN, which translates no
// addresses for control planes with several replicas. Only those need networks apart from the seed's.
func overlappingNetworks(shoot *corev1beta1.Shoot, seed *corev1beta1.Seed) string {
	if shoot.Spec.ControlPlane == nil || shoot.Spec.ControlPlane.HighAvailability == nil || shoot.Spec.Networking == nil {
		return ""
	}
	ofShoot := map[string]*string{"pods": shoot.Spec.Networking.Pods, "services": shoot.Spec.Networking.Services, "nodes": shoot.Spec.Networking.Nodes}
	ofSeed := map[string]*string{"pods": &seed.Spec.Networks.Pods, "services": &seed.Spec.Networks.Services, "nodes": seed.Spec.Networks.Nodes}
	for _, shootPart := range []string{"nodes", "pods", "services"} {
		for _, seedPart := range []string{"nodes", "pods", "services"} {
			if overlap(ptr.Deref(ofShoot[shootPart], ""), ptr.Deref(ofSeed[seedPart], "")) {
				return fmt.Sprintf("its network for %s %s overlaps the shoot's for %s %s", seedPart, *ofSeed[seedPart], shootPart, *ofShoot[shootPart])
			}
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
