package capacity

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// maxNodes that one cluster may claim, and how many times as much as one node a cluster may have of a resource.
const (
	maxNodes   = 1 << 20
	maxOfNodes = 1 << 10
)

// Check says what cannot be in a summary that somebody else wrote: the agent of a member, for example. Decisions add
// such amounts up.
func Check(summary *clusterv1alpha1.ResourceSummary) error {
	if summary == nil {
		return nil
	}
	for field, list := range map[string]corev1.ResourceList{
		"allocatable": summary.Allocatable, "allocating": summary.Allocating, "allocated": summary.Allocated,
		"available": summary.Available, "contiguous": summary.Contiguous,
	} {
		if err := checkList(list, maxOfNodes); err != nil {
			return fmt.Errorf("status.resourceSummary.%s %w", field, err)
		}
	}
	if len(summary.NodeClasses) > clusterv1alpha1.MaxNodeClasses {
		return fmt.Errorf("status.resourceSummary.nodeClasses has %d entries, more than %d", len(summary.NodeClasses),
			clusterv1alpha1.MaxNodeClasses)
	}
	for i, class := range summary.NodeClasses {
		if class.Count < 0 || class.Count > maxNodes {
			return fmt.Errorf("status.resourceSummary.nodeClasses[%d] claims %d nodes", i, class.Count)
		}
		if err := checkList(class.Free, 1); err != nil {
			return fmt.Errorf("status.resourceSummary.nodeClasses[%d].free %w", i, err)
		}
	}
	return nil
}

func checkList(list corev1.ResourceList, times int64) error {
	if len(list) > 2*maxResources {
		return fmt.Errorf("claims %d different resources", len(list))
	}
	for name, quantity := range list {
		if quantity.Sign() < 0 || quantity.Cmp(*resource.NewQuantity(mostOf(name)*times, resource.DecimalSI)) > 0 {
			return fmt.Errorf("claims %s of %s", shorten(quantity.String()), shorten(string(name)))
		}
	}
	return nil
}
