package v1alpha1

// Names that the federation process and others know.
const (
	// ShootLabel, on Clusters and Secrets of a fleet, names the shoot of the fleet's project that they were made for.
	// Clusters without it were imported by people and are left alone.
	ShootLabel = "federation.trellis.garden/shoot"
	// MemberLabel, on certificate signing requests of agents, names the member.
	MemberLabel = "federation.trellis.garden/cluster"
	// AgentUserPrefix, the member's name and the UID of its Cluster are the user that an agent is in a fleet.
	AgentUserPrefix = "federation.trellis.garden:agent:"

	// APIServiceName is that of the APIService that has a fleet's kube-apiserver ask the federation process for
	// Clusters.
	APIServiceName = "v1alpha1.cluster.karmada.io"
	// TrialAPIServiceName is that of an APIService for a version in which there is nothing. It is there for a moment,
	// to find out whether the kube-apiserver reaches the federation process, which keeps nobody from reading Clusters
	// when it does not.
	TrialAPIServiceName = "v1.reach.federation.trellis.garden"
)
