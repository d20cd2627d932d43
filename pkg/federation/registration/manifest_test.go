package registration

import (
	"testing"

	"github.com/trellis-garden/trellis/pkg/component/golden"
)

func TestAgentDeployment(t *testing.T) {
	invitation := &Invitation{Member: "edge", UID: "uid", Access: "fleet-edge", Kubeconfig: []byte("kubeconfig")}
	golden.Check(t, "agent", invitation.deployment(AgentOptions{Image: "federation:1"}))
}
