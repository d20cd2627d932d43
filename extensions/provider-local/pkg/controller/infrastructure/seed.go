package infrastructure

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// refuseWithinMachines fails when the seed is a shoot of the local cloud itself: its nodes are machines, which have no
// bridges of the cloud, so that a machine in one of them would wait for its network forever. All nodes of a shoot are
// machines; one of them tells.
func (a *actuator) refuseWithinMachines(ctx context.Context) error {
	nodes := &corev1.NodeList{}
	if err := a.nodes.List(ctx, nodes, client.Limit(1)); err != nil {
		return fmt.Errorf("listing nodes of the seed: %w", err)
	}
	if len(nodes.Items) == 0 || !strings.HasPrefix(nodes.Items[0].Spec.ProviderID, apis.ProviderIDPrefix) {
		return nil
	}
	err := fmt.Errorf("the nodes of this seed are machines of the local cloud themselves (node %s), in which no "+
		"machines of other shoots can run: choose another seed, or a shoot without workers", nodes.Items[0].Name)
	return extension.WithCodes(err, gardencorev1beta1.ErrorConfigurationProblem)
}
