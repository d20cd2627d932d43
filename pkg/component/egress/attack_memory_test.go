package egress

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-garden/trellis/pkg/egress/proxy"
)

// All control planes of a seed share the proxy: what it may take at most is known, and it collects garbage before that.
func TestAttackMemoryOfTheProxy(t *testing.T) {
	container := deployment(Values{Image: "vpn:v1"}, nil).Spec.Template.Spec.Containers[0]
	collects := slices.ContainsFunc(container.Env,
		func(v corev1.EnvVar) bool { return v.Name == "GOMEMLIMIT" && v.Value != "" })
	if limit := container.Resources.Limits.Memory(); limit.Value() < proxy.Memory() || !collects {
		t.Errorf("limit %s, connections take %d, environment %v", limit, proxy.Memory(), container.Env)
	}
}
