package registration

const (
	// FleetAccount is the user that the federation process is in its fleet.
	FleetAccount = "system:serviceaccount:kube-system:federation"
	// FleetAccessSecret is the Secret in the seed, beside the control plane of a fleet, that gets the tokens of that
	// account. A shoot whose namespace has it is a fleet.
	FleetAccessSecret = "shoot-access-federation"
	// MastersGroup stands for system:masters in requests for Clusters that the federation process hands back to the
	// fleet's kube-apiserver: Kubernetes lets nobody impersonate that group for some requests only. It may do anything
	// with Clusters, and nothing else.
	MastersGroup = "federation.trellis.garden:masters"
)
