package shoot

// What a replica of CoreDNS serves.
const (
	nodesPerDNSReplica int64 = 16
	coresPerDNSReplica int64 = 256
)

// planSystemComponents decides about what runs in kube-system of the shoot.
func (p *Plan) planSystemComponents(in *Inputs) error {
	if p.Workerless {
		return nil
	}
	p.CoreDNS.Replicas = dnsReplicas(p.Pools)
	user := in.Shoot.Spec.SystemComponents
	if user != nil && user.CoreDNS != nil && user.CoreDNS.Rewriting != nil {
		p.CoreDNS.CommonSuffixes = user.CoreDNS.Rewriting.CommonSuffixes
	}
	return nil
}

// dnsReplicas is in proportion to the nodes and cores that the pools may have, and two at least where these do not lie on
// one node. More than the nodes that they may run on would help nobody.
func dnsReplicas(pools []PoolPlan) int32 {
	var nodes, cores, places int64
	for _, pool := range pools {
		nodes += int64(pool.Worker.Maximum)
		if pool.MachineType != nil {
			cores += int64(pool.Worker.Maximum) * pool.MachineType.CPU.Value()
		}
		if allowsSystemComponents(pool.Worker) {
			places += int64(pool.Worker.Maximum)
		}
	}
	replicas := max(2, roundedUp(nodes, nodesPerDNSReplica), roundedUp(cores, coresPerDNSReplica))
	return int32(max(1, min(replicas, places)))
}

func roundedUp(amount, per int64) int64 { return (amount + per - 1) / per }
