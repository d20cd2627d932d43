// Package failover watches over members and copies that fail. It taints clusters that are away for long, or that a
// ClusterTaintPolicy names; moves objects away from clusters whose NoExecute taints they don't tolerate, and from
// copies that stay unhealthy; removes old copies when their replacement is healthy; and brings objects back when what
// failed has been healthy for a while. What to do is decided by pkg/federation/failover; all that has to be remembered
// is in the bindings and clusters, so that the process may die at any time.
package failover
