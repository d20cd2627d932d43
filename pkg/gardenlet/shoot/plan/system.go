package plan

import (
	"net"
	"strconv"

	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component/apiserverproxy"
	"github.com/trellis-garden/trellis/pkg/component/coredns"
	"github.com/trellis-garden/trellis/pkg/component/kubeproxy"
	"github.com/trellis-garden/trellis/pkg/component/vpnshoot"
)

// What a replica of CoreDNS serves.
const (
	nodesPerDNSReplica int64 = 16
	coresPerDNSReplica int64 = 256
)

// planSystemComponents decides about what runs in kube-system of the shoot, when networks, images and pools are known.
func (p *Plan) planSystemComponents(in *Inputs) error {
	p.System.System.IsWorkerless = p.Workerless
	if p.Workerless {
		return nil
	}
	for _, pool := range p.Pools {
		p.System.System.NodeAgentSecrets = append(p.System.System.NodeAgentSecrets, pool.SecretName)
	}
	p.System.VPNShoot = vpnshoot.Values{Image: p.Images["vpn"], Endpoint: p.gatewayAt(p.Gateway.WireGuardPort)}
	p.System.KubeProxy = p.kubeProxyValues()
	p.System.CoreDNS = p.coreDNSValues(in.Shoot.Spec.SystemComponents)
	p.System.MetricsServer.Image = p.Images["metrics-server"]
	p.System.APIServerProxy = apiserverproxy.Values{
		Image: p.Images["vpn"], AdvertiseAddress: p.APIServer.AdvertiseAddress,
		Gateway: p.gatewayAt(p.Gateway.ProxyPort), Authority: p.Hostname(),
	}
	return nil
}

func (p *Plan) kubeProxyValues() kubeproxy.Values {
	values := kubeproxy.Values{
		Image: p.Images["kube-proxy"], PodNetworks: p.Networks.Pods, Server: "https://" + p.Hostname(),
	}
	if user := p.Kubernetes.KubeProxy; user != nil {
		values.Mode, values.FeatureGates = ptr.Deref(user.Mode, ""), user.FeatureGates
	}
	return values
}

func (p *Plan) coreDNSValues(user *gardencorev1beta1.SystemComponents) coredns.Values {
	values := coredns.Values{
		Image: p.Images["coredns"], ClusterIP: p.Networks.DNS, ClusterDomain: ClusterDomain,
		Replicas: dnsReplicas(p.Pools),
	}
	if user != nil && user.CoreDNS != nil && user.CoreDNS.Rewriting != nil {
		values.CommonSuffixes = user.CoreDNS.Rewriting.CommonSuffixes
	}
	return values
}

// gatewayAt is host:port of the seed's gateway.
func (p *Plan) gatewayAt(port int) string {
	return net.JoinHostPort(p.Gateway.Address, strconv.Itoa(port))
}

// dnsReplicas is in proportion to the nodes and cores that the pools may have, and two at least where these do not
// lie on one node. More than the nodes that they may run on would help nobody.
func dnsReplicas(pools []Pool) int32 {
	var nodes, cores, places int64
	for _, pool := range pools {
		nodes += int64(pool.Worker.Maximum)
		if pool.MachineType != nil {
			cores += int64(pool.Worker.Maximum) * pool.MachineType.CPU.Value()
		}
		if AllowsSystemComponents(pool.Worker) {
			places += int64(pool.Worker.Maximum)
		}
	}
	replicas := max(2, roundedUp(nodes, nodesPerDNSReplica), roundedUp(cores, coresPerDNSReplica))
	return int32(max(1, min(replicas, places)))
}

func roundedUp(amount, per int64) int64 { return (amount + per - 1) / per }
