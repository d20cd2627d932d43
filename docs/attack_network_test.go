package docs

import (
	"strings"
	"testing"

	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
)

// refused fails for every connection that the policies let through.
func refused(t *testing.T, from, to func(party) bool) {
	t.Helper()
	refusedAt(t, from, to, func(networkPort) bool { return true })
}

// refusedAt is refused for some ports.
func refusedAt(t *testing.T, from, to func(party) bool, at func(networkPort) bool) {
	t.Helper()
	s, tried := newSeed(t), 0
	for _, a := range s.parties {
		for _, b := range s.parties {
			if a.address == b.address || !from(a) || !to(b) {
				continue
			}
			for _, port := range b.ports {
				if !at(port) {
					continue
				}
				tried++
				if s.allows(a, b, port) {
					t.Errorf("%s/%s reaches %s/%s at %s", a.namespace, a.name, b.namespace, b.name, port)
				}
			}
		}
	}
	if tried == 0 {
		t.Fatal("nothing was tried")
	}
}

func ofShoot(p party) bool { return strings.HasPrefix(p.namespace, "shoot--") }

// Who takes over a pod of one control plane reaches none of another.
func TestAttackOtherControlPlanes(t *testing.T) {
	for _, own := range []string{"shoot--demo--one", "shoot--demo--fleet"} {
		refused(t, func(p party) bool { return p.namespace == own },
			func(p party) bool { return ofShoot(p) && p.namespace != own })
	}
}

// Who takes over a pod of a control plane reaches of the garden the egress proxy and the gateway, which everybody
// reaches, and no API of the seed unless the pod works in it.
func TestAttackGardenFromAControlPlane(t *testing.T) {
	refused(t, ofShoot, func(p party) bool {
		return p.namespace == "garden" && p.name != "egress" && p.name != "gateway"
	})
	refused(t, func(p party) bool {
		return ofShoot(p) && p.name != "machine-controller-manager" && p.name != "cluster-autoscaler"
	}, func(p party) bool { return p.name == "seed-apiserver" })
}

// etcd answers kube-apiserver and its own members, and nobody else. gardenlet asks those of shoots for their status, at
// another port.
func TestAttackEtcdOfAControlPlane(t *testing.T) {
	etcds := func(p party) bool { return strings.HasPrefix(p.name, "etcd-") }
	etcdsOfShoots := func(p party) bool { return etcds(p) && ofShoot(p) }
	refused(t, func(p party) bool {
		return p.name != "kube-apiserver" && p.name != "garden-apiserver" && p.name != "gardenlet" && !etcds(p)
	}, etcds)
	named := func(name string) func(party) bool { return func(p party) bool { return p.name == name } }
	refused(t, named("etcd-main"), named("etcd-events"))
	refused(t, named("etcd-events"), named("etcd-main"))
	refusedAt(t, etcds, etcds, func(port networkPort) bool { return port.number == etcdcomponent.HealthPort })
	refusedAt(t, func(p party) bool { return !etcds(p) }, etcds,
		func(port networkPort) bool { return port.number == etcdcomponent.PeerPort })
	refused(t, func(p party) bool { return p.namespace == "garden" && p.name != "gardenlet" }, etcdsOfShoots)
	gardenlet := func(p party) bool { return p.name == "gardenlet" }
	refused(t, gardenlet, func(p party) bool { return etcds(p) && !ofShoot(p) })
	refusedAt(t, gardenlet, etcdsOfShoots,
		func(port networkPort) bool { return port.number != etcdcomponent.HealthPort })
}

// No pod of the seed reaches the metadata service of the cloud, its nodes' kubelets or what is blocked.
func TestAttackMetadataFromASeed(t *testing.T) {
	pods := func(p party) bool { return p.group != "outside" }
	refused(t, pods, func(p party) bool { return p.name == "metadata" || p.name == "kubelet" || p.name == "blocked" })
}

// Pods of a seed that belong to nobody we know reach what strangers reach: the gateway.
func TestAttackFromOtherPodsOfASeed(t *testing.T) {
	refused(t, func(p party) bool { return p.name == "pod-of-others" },
		func(p party) bool { return p.group != "outside" && p.name != "gateway" })
}

// Who takes over a machine that is a pod of the seed reaches of the seed what any machine reaches, and nobody's
// machines but its cluster's; nobody else reaches machines.
func TestAttackMachines(t *testing.T) {
	machines := func(p party) bool { return p.group == "machines" }
	refused(t, machines, func(p party) bool {
		return ofShoot(p) || p.group == "extension" || p.group == "garden" && p.name != "gateway"
	})
	refused(t, machines, func(p party) bool {
		return p.name == "seed-apiserver" || p.name == "private" || p.name == "pod-of-others"
	})
	for _, own := range []string{"infra-shoot--demo--one", "infra-shoot--demo--two"} {
		refused(t, func(p party) bool { return p.namespace != own }, func(p party) bool { return p.namespace == own })
	}
}
