package plan

import (
	"net"
	"strconv"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
)

// planComponents decides the values of all components, when networks, images and pools are known.
func (p *Plan) planComponents(in *Inputs) error {
	p.Values = components.Decide(p.facts(in), &in.Shoot.Spec)
	return nil
}

// facts are what the values of components are decided from.
func (p *Plan) facts(in *Inputs) component.Facts {
	f := component.Facts{
		Namespace: p.Namespace, KubernetesVersion: p.KubernetesVersion, Kubernetes: p.Kubernetes,
		SystemComponents: in.Shoot.Spec.SystemComponents, Availability: availabilityOf(in),
		IsWorkerless: p.Workerless, Images: p.Images,
		PodNetworks: p.Networks.Pods, ServiceNetworks: p.Networks.Services, DNS: p.Networks.DNS,
		ClusterDomain: ClusterDomain, Hostnames: p.hostnames(), Hostname: p.Hostname(),
		EncryptedResources: encryptedResources(in.Shoot),
		TunnelEndpoint:     p.gatewayAt(p.Gateway.WireGuardPort),
		ProxyEndpoint:      p.gatewayAt(p.Gateway.ProxyPort),
		MinimumVolumeSize:  p.Seed.MinimumVolumeSize, TrafficDistribution: p.Seed.TrafficDistribution,
		Most: sizes(p.Pools),
	}
	if p.Seed.Backup != nil {
		f.BackupPrefix, f.RestoreETCD = p.Seed.Backup.Entry, p.Restore.Restore
		f.BackupClaim, f.ETCDBackup = claimOf(in), in.ETCDBackup
	}
	if !p.Workerless {
		f.AdvertiseAddress = advertiseAddress
	}
	for _, pool := range p.Pools {
		f.NodeAgentSecrets = append(f.NodeAgentSecrets, pool.SecretName)
	}
	return f
}

// claimOf is the number by which etcd takes over backups: when it last came from another seed. 0 if it never did.
func claimOf(in *Inputs) int64 {
	if moved := in.Shoot.Status.MigrationStartTime; moved != nil {
		return moved.Unix()
	}
	return 0
}

// availabilityOf a control plane is what failures it is to outlast.
func availabilityOf(in *Inputs) component.Availability {
	tolerance := gardencorev1beta1.FailureToleranceOf(&in.Shoot.Spec)
	return component.Availability{Tolerance: tolerance, IsSeedSingle: tolerance != "" && in.IsSeedSingle}
}

// sizes are what the pools may grow to.
func sizes(pools []Pool) component.PoolSizes {
	var most component.PoolSizes
	for _, pool := range pools {
		nodes := int64(pool.Worker.Maximum)
		most.Nodes += nodes
		if pool.MachineType != nil {
			most.Cores += nodes * pool.MachineType.CPU.Value()
		}
		if AllowsSystemComponents(pool.Worker) {
			most.SystemNodes += nodes
		}
	}
	return most
}

// gatewayAt is host:port of the seed's gateway.
func (p *Plan) gatewayAt(port int) string {
	return net.JoinHostPort(p.Gateway.Address, strconv.Itoa(port))
}
