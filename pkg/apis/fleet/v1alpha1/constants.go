package v1alpha1

// Names that the federation process and others know.
const (
	// JoinLabel (value "false"), on a Shoot, keeps it out of the project's fleets.
	JoinLabel = "federation.trellis.garden/join"
	// AccessSecret is the Secret in the seed, beside the control plane of a fleet, that gets the tokens of the account
	// that the federation process has in its fleet. A shoot whose namespace has it is a fleet.
	AccessSecret = "shoot-access-federation"
	// LeaderLease is the Lease in a fleet, in the namespace of its members' credentials, that the one of several
	// federation processes holds which works. Nobody else may write it.
	LeaderLease = "federation-leader"
	// MastersGroup stands for system:masters in requests for Clusters that the federation process hands back to the
	// fleet's kube-apiserver: Kubernetes lets nobody impersonate that group for some requests only. It may do anything
	// with Clusters, and nothing else.
	MastersGroup = "federation.trellis.garden:masters"
)
