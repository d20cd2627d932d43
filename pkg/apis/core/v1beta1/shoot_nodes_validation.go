package v1beta1

import (
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateNodesFit checks that each node that the pools may have gets a range of its own from the range of pods.
func validateNodesFit(spec *ShootSpec, path *field.Path) field.ErrorList {
	fit, ranges, ok := nodesThatFit(spec)
	if !ok {
		return nil // what is wrong with the ranges is reported with them
	}
	nodes := int64(0)
	for i, worker := range spec.Provider.Workers {
		if nodes += int64(worker.Maximum); nodes > fit {
			return field.ErrorList{field.Invalid(path.Child("provider", "workers").Index(i).Child("maximum"),
				worker.Maximum,
				fmt.Sprintf("with this pool there may be %d nodes, and %s: lower the maximum, or create a cluster "+
					"with a larger range of pods "+
					"(spec.networking.pods) or a larger spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize", nodes,
					ranges))}
		}
	}
	return nil
}

// validateNodesFitUpdate leaves alone a shoot that had too many nodes before that was refused, as long as it asks for
// no more.
func validateNodesFitUpdate(spec, old *ShootSpec, path *field.Path) field.ErrorList {
	fit, _, ok := nodesThatFit(spec)
	before, _, wasOK := nodesThatFit(old)
	if ok && wasOK && fit >= before && maximumOfPools(spec) <= maximumOfPools(old) {
		return nil
	}
	return validateNodesFit(spec, path)
}

func maximumOfPools(spec *ShootSpec) int64 {
	nodes := int64(0)
	for _, worker := range spec.Provider.Workers {
		nodes += int64(worker.Maximum)
	}
	return nodes
}

// nodesThatFit returns how many nodes get a range of pods, and says why. While the range of all pods is not known,
// which may be the seed's default, that is what kube-controller-manager hands out at most.
func nodesThatFit(spec *ShootSpec) (nodes int64, why string, ok bool) {
	if len(spec.Provider.Workers) == 0 || spec.Networking == nil {
		return 0, "", false
	}
	if spec.Networking.Pods == nil {
		return 1 << maxNodeRangeBits, fmt.Sprintf("no cluster has ranges of pods for more than %d",
			1<<maxNodeRangeBits), true
	}
	pods, err := netip.ParsePrefix(*spec.Networking.Pods)
	if err != nil {
		return 0, "", false
	}
	size := nodeCIDRMaskSize(spec)
	if manager := spec.Kubernetes.KubeControllerManager; manager != nil && manager.NodeCIDRMaskSize != nil {
		size = *manager.NodeCIDRMaskSize
	}
	bits := int(size) - pods.Bits()
	if bits < 0 || bits > maxNodeRangeBits {
		return 0, "", false
	}
	return 1 << bits, fmt.Sprintf("%s has a /%d of pods for %d", pods, size, 1<<bits), true
}
