package networkpolicies

import (
	"net/netip"
	"testing"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component/golden"
	"github.com/trellis-garden/trellis/pkg/egress"
)

func values() Values {
	nodes := "172.18.0.0/24"
	return Values{
		Networks: gardencorev1beta1.SeedNetworks{
			Nodes: &nodes, Pods: "10.1.0.0/16", Services: "10.2.0.0/16", BlockCIDRs: []string{"203.0.114.0/24"},
		},
		APIServer: []Endpoint{
			{Address: netip.MustParseAddr("10.2.0.1"), Port: 443},
			{Address: netip.MustParseAddr("172.18.0.2"), Port: 6443},
		},
		Exceptions: []egress.Allowance{
			{Network: netip.MustParsePrefix("10.0.0.0/8")},
			{Network: netip.MustParsePrefix("172.18.0.2/32"), Port: 443},
		},
	}
}

func TestObjects(t *testing.T) {
	golden.Check(t, "shoot", Objects(Shoot, "shoot--demo--member1", values())...)
	workerless := values()
	workerless.WithoutVPN = true
	golden.Check(t, "workerless", Objects(Shoot, "shoot--demo--fleet", workerless)...)
	backedUp := workerless
	backedUp.BackedUp = true
	golden.Check(t, "backed-up", Objects(Shoot, "shoot--demo--fleet", backedUp)...)
	several := workerless
	several.HighlyAvailable = true
	golden.Check(t, "etcd-peers", Objects(Shoot, "shoot--demo--fleet", several)...)
	several.WithoutVPN = false
	golden.Check(t, "highly-available", Objects(Shoot, "shoot--demo--member1", several)...)
	golden.Check(t, "machines", Objects(Machines, "infra-shoot--demo--member1", values())...)
	golden.Check(t, "garden", Objects(Garden, "garden", values())...)
	serving := values()
	serving.HighlyAvailable = true
	golden.Check(t, "garden-of-highly-available", Objects(Garden, "garden", serving)...)
	opened := values()
	opened.Openings = []Opening{{Service: "webhooks", Pods: map[string]string{"app": "example"}, Ports: tcp(10250)}}
	golden.Check(t, "extension", Objects(Extension, "extension-example", opened)...)
}
