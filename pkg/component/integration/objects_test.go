package integration

import (
	"testing"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/networkpolicies"
	"github.com/trellis-garden/trellis/pkg/etcd"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
)

func newFlagSet(options *etcd.Options) *pflag.FlagSet {
	flags := pflag.NewFlagSet("etcd-steward", pflag.ContinueOnError)
	options.AddFlags(flags)
	return flags
}

// systemObjects are all objects that a shoot starts with, and, to let a real server check them too, the policies of its
// namespace in the seed.
func (cp *controlPlane) systemObjects(t *testing.T) []client.Object {
	t.Helper()
	shoot := &gardencorev1beta1.ShootSpec{
		Provider: gardencorev1beta1.Provider{Workers: []gardencorev1beta1.Worker{{Name: "pool"}}},
	}
	facts := component.Facts{
		Images: map[string]string{}, PodNetworks: []string{"10.3.0.0/16"}, DNS: "10.4.0.10",
		Hostname: "api.member1.demo.local.trellis.garden", TunnelEndpoint: "gw:51820", ProxyEndpoint: "gw:8443",
		NodeAgentSecrets: []string{"osc"},
	}
	for _, name := range components.Images() {
		facts.Images[name] = name
	}
	builder := &components.Builder{Secrets: cp.secrets, Values: components.Decide(facts, shoot)}
	objects := networkpolicies.Objects(networkpolicies.Shoot, "default", networkpolicies.Values{
		Networks: gardencorev1beta1.SeedNetworks{Pods: "10.1.0.0/16", Services: "10.2.0.0/16"},
	})
	for _, c := range components.System {
		made, err := c.Objects(t.Context(), builder)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		objects = append(objects, made...)
	}
	return objects
}
