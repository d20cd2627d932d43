package v1alpha1

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Finalizer keeps a Cluster until nothing of the fleet is left in it.
	Finalizer = "karmada.io/cluster-controller"
	// CredentialsNamespace is the fleet's namespace that holds the members' credentials.
	CredentialsNamespace = "karmada-cluster"
	// ExecutionNamespacePrefix and a cluster's name give the namespace of its Works.
	ExecutionNamespacePrefix = "karmada-es-"

	// TaintNotReady is on clusters whose API says that it is not ready, or that were never asked.
	TaintNotReady = "cluster.karmada.io/not-ready"
	// TaintUnreachable is on clusters whose API cannot be reached.
	TaintUnreachable = "cluster.karmada.io/unreachable"
	// TaintUnschedulable is on clusters that people cordon or drain.
	TaintUnschedulable = "cluster.karmada.io/unschedulable"
	// TaintHibernated, with effect NoExecute, is on shoots that sleep, fall asleep, or will do so soon by their
	// schedule (extension).
	TaintHibernated = "federation.trellis.garden/hibernated"

	// ConditionReady says whether the cluster's API answers.
	ConditionReady = "Ready"
	// ReasonHibernated is why a cluster that sleeps is not Ready.
	ReasonHibernated = "ClusterHibernated"
	// ReasonNotConnected is why a cluster is not Ready that cannot be asked, for lack of credentials for example.
	ReasonNotConnected = "NotConnected"
	// ReasonNotAccepted is why a cluster is not Ready whose agent was not accepted yet.
	ReasonNotAccepted = "WaitingForAcceptance"
	// ReasonNotReported is why it is not known whether a cluster is Ready whose agent has said nothing yet.
	ReasonNotReported = "WaitingForReport"
	// HibernatedAnnotation is "true" on a cluster that sleeps or wakes up, or falls asleep and is drained: that it does
	// not answer is no failure.
	HibernatedAnnotation = "federation.trellis.garden/hibernated"
	// DrainLeaseLabel (value "true") is on Leases in namespace kube-system of a shoot that is a member. Each is a
	// fleet's, which renews it while it has objects there that have to leave before the shoot sleeps. Until all of them
	// are gone or have expired, though not for longer than DrainTimeout, the shoot's machines stay.
	DrainLeaseLabel = "federation.trellis.garden/drain"
	// SteadySinceAnnotation holds since when neither readiness nor taints of a cluster have changed, and a digest of
	// them.
	SteadySinceAnnotation = "federation.trellis.garden/steady-since"
	// ConfirmDeletionAnnotation, on a cluster, confirms all deletions in it that were asked for until the time that it
	// holds (RFC 3339).
	ConfirmDeletionAnnotation = "federation.trellis.garden/confirm-deletion"
	// RenewAnnotation, on the Secret with a member's credentials, says when they are to be renewed (RFC 3339).
	RenewAnnotation = "federation.trellis.garden/renew-at"
	// ManagedByLabel has the value ManagedByFleet on objects that a fleet's federation process makes for itself, in the
	// fleet and in members.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// ManagedByFleet is the value of ManagedByLabel.
	ManagedByFleet = "trellis-federation"
	// DeletionsAnnotation, on a cluster, counts the objects that were deleted in it lately.
	DeletionsAnnotation = "federation.trellis.garden/deletions"
	// ConditionDeletionHeld is True while deletions in the cluster wait for a confirmation.
	ConditionDeletionHeld = "DeletionHeld"
	// ConditionRemovalPending is True while the cluster has objects that the fleet has taken away from it and that
	// could not be removed yet (extension). What ConditionDeletionHeld is about doesn't count.
	ConditionRemovalPending = "RemovalPending"
	// ConditionCompleteAPIEnablements says whether status.apiEnablements is complete.
	ConditionCompleteAPIEnablements = "CompleteAPIEnablements"
	// ConditionResourcesObserved says whether status.resourceSummary tells what the cluster's nodes have (extension).
	// True with reason ReasonObserved: node by node; with ReasonSummed: sums only. False: why it does not, or what was
	// left out of it.
	ConditionResourcesObserved = "ResourcesObserved"
	// ConditionAnswersWithinLimits is False for a while after an answer of the cluster was too large to be read
	// (extension).
	ConditionAnswersWithinLimits = "AnswersWithinLimits"
	// ConditionCredentialsRenewed is False while the fleet fails to renew its credentials for a cluster that joined
	// (extension).
	ConditionCredentialsRenewed = "CredentialsRenewed"

	// ConditionAgentReported is what the agent of a member with syncMode Pull says about the member's API (extension):
	// True when it is ready, False when it is not or the agent does not serve the member, Unknown when it does not
	// answer the agent.
	ConditionAgentReported = "AgentReported"
	// ConditionAgentLeaving is about the agent of a member with syncMode Pull that is to leave (extension): False while
	// the fleet waits for the agent, True when the agent has stored that it has to go. Then the fleet takes its rights.
	ConditionAgentLeaving = "AgentLeaving"

	// ReasonObserved: every node is watched.
	ReasonObserved = "NodesObserved"
	// ReasonSummed: the cluster has more nodes or pods than are kept in memory, so only their sums are known.
	ReasonSummed = "SumsOnly"
	// ReasonImplausible: nodes or pods claim what cannot be; they are left out.
	ReasonImplausible = "ImplausibleResources"
	// ReasonUnreadable: nodes or pods cannot be read.
	ReasonUnreadable = "NotReadable"
	// ReasonInvalidModels: spec.resourceModels cannot be used.
	ReasonInvalidModels = "InvalidResourceModels"
)

// DrainTimeout is how long a shoot that is to sleep waits for its fleets.
const DrainTimeout = 2 * time.Minute

// MaxNodeClasses bounds status.resourceSummary.nodeClasses.
const MaxNodeClasses = 64

// Keys of the Secret that spec.secretRef names. Either SecretKubeconfig alone, or SecretCABundle with a token or
// with a client certificate and its key.
const (
	SecretKubeconfig = "kubeconfig"
	SecretCABundle   = "caBundle"
	SecretToken      = "token"
	SecretClientCert = "tls.crt"
	SecretClientKey  = "tls.key"
)

// Cluster is a member of a fleet.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusters,scope=Cluster,categories={karmada-io}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:JSONPath=`.status.kubernetesVersion`,name="Version",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.syncMode`,name="Mode",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.conditions[?(@.type=="Ready")].status`,name="Ready",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.nodeSummary.readyNum`,name="Nodes",type=integer
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
// +kubebuilder:printcolumn:JSONPath=`.spec.zones`,name="Zones",type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.spec.region`,name="Region",type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.spec.provider`,name="Provider",type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.spec.apiEndpoint`,name="APIEndpoint",type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.status.resourceSummary.allocatable.cpu`,name="CPU",type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.status.resourceSummary.available.cpu`,name="CPU-Free",type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.status.resourceSummary.contiguous.cpu`,name="CPU-Hole",type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.status.resourceSummary.allocatable.memory`,name="Memory",type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.status.resourceSummary.available.memory`,name="Memory-Free",type=string,priority=1
// +kubebuilder:printcolumn:JSONPath=`.status.resourceSummary.contiguous.memory`,name="Memory-Hole",type=string,priority=1
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Cluster struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	Spec ClusterSpec `json:"spec"`
	// What was observed; written by controllers.
	// +optional
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []Cluster `json:"items"`
}

// SyncMode is Push or Pull.
type SyncMode string

// Values of SyncMode.
const (
	// Push: the fleet talks to the member.
	Push SyncMode = "Push"
	// Pull: an agent in the member talks to the fleet.
	Pull SyncMode = "Pull"
)

// ClusterSpec says how a member is reached and what it is like.
type ClusterSpec struct {
	// ID identifies the cluster over all fleets: the UID of its namespace kube-system.
	// +kubebuilder:validation:MaxLength=128000
	// +optional
	ID string `json:"id,omitempty"`
	// SyncMode Push has the fleet write to the cluster's API; with Pull, an agent in the cluster fetches what it has to
	// run.
	// +kubebuilder:validation:Enum=Push;Pull
	SyncMode SyncMode `json:"syncMode"`
	// APIEndpoint is the URL of the cluster's API, for example https://10.0.0.1:6443.
	// +optional
	APIEndpoint string `json:"apiEndpoint,omitempty"`
	// SecretRef names the Secret with the credentials. Its keys are either kubeconfig, or caBundle with token or with a
	// client certificate and its key.
	// +optional
	SecretRef *LocalSecretReference `json:"secretRef,omitempty"`
	// ImpersonatorSecretRef names the Secret of a user that may impersonate others.
	// +optional
	ImpersonatorSecretRef *LocalSecretReference `json:"impersonatorSecretRef,omitempty"`
	// InsecureSkipTLSVerification accepts any server certificate.
	// +optional
	InsecureSkipTLSVerification bool `json:"insecureSkipTLSVerification,omitempty"`
	// ProxyURL is a proxy on the way to the API.
	// +optional
	ProxyURL string `json:"proxyURL,omitempty"`
	// ProxyHeader is sent to the proxy.
	// +optional
	ProxyHeader map[string]string `json:"proxyHeader,omitempty"`
	// Provider of the cluster's machines.
	// +optional
	Provider string `json:"provider,omitempty"`
	// Region of the cluster.
	// +optional
	Region string `json:"region,omitempty"`
	// Zone is the older form of Zones.
	// +optional
	Zone string `json:"zone,omitempty"`
	// Zones of the cluster's machines.
	// +optional
	Zones []string `json:"zones,omitempty"`
	// Taints keep objects away that don't tolerate them.
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`
	// ResourceModels are grades of nodes, for estimates.
	// +kubebuilder:validation:MaxItems=128
	// +optional
	ResourceModels []ResourceModel `json:"resourceModels,omitempty"`
}

// LocalSecretReference names a Secret of the fleet.
type LocalSecretReference struct {
	// Namespace of the Secret.
	Namespace string `json:"namespace"`
	// Name of the Secret.
	Name string `json:"name"`
}

// ResourceModel is a grade of nodes.
type ResourceModel struct {
	// Grade orders the models.
	// +kubebuilder:validation:Minimum=0
	Grade int64 `json:"grade"`
	// Ranges bound the resources of a node of this grade.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Ranges []ResourceModelRange `json:"ranges"`
}

// ResourceModelRange bounds one resource: Min is included, Max is not.
type ResourceModelRange struct {
	// Name of the resource.
	Name corev1.ResourceName `json:"name"`
	// Min is the smallest amount.
	Min resource.Quantity `json:"min"`
	// Max is the amount that is too much.
	Max resource.Quantity `json:"max"`
}

// ClusterStatus is what was last seen of a member.
type ClusterStatus struct {
	// KubernetesVersion of the API server.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// APIEnablements are the APIs that the cluster serves.
	// +optional
	APIEnablements []APIEnablement `json:"apiEnablements,omitempty"`
	// Conditions: Ready, CompleteAPIEnablements; as extensions ResourcesObserved, AnswersWithinLimits,
	// CredentialsRenewed, AgentReported, DeletionHeld, RemovalPending.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// NodeSummary counts nodes.
	// +optional
	NodeSummary *NodeSummary `json:"nodeSummary,omitempty"`
	// ResourceSummary adds up what nodes have and pods use.
	// +optional
	ResourceSummary *ResourceSummary `json:"resourceSummary,omitempty"`
	// RemedyActions are under way.
	// +optional
	RemedyActions []string `json:"remedyActions,omitempty"`
}

// APIEnablement lists the kinds of one API group and version.
type APIEnablement struct {
	// GroupVersion, for example apps/v1.
	GroupVersion string `json:"groupVersion"`
	// Resources of it.
	// +optional
	Resources []APIResource `json:"resources,omitempty"`
}

// APIResource is one kind.
type APIResource struct {
	// Name is the plural, for example deployments.
	Name string `json:"name"`
	// Kind, for example Deployment.
	Kind string `json:"kind"`
}

// NodeSummary counts nodes.
type NodeSummary struct {
	// TotalNum is the number of nodes.
	// +optional
	TotalNum int32 `json:"totalNum,omitempty"`
	// ReadyNum is the number of nodes that are ready.
	// +optional
	ReadyNum int32 `json:"readyNum,omitempty"`
}

// ResourceSummary adds up resources of nodes that can be scheduled to.
type ResourceSummary struct {
	// Allocatable is what nodes offer.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// Allocating is requested by pods that have no node yet.
	// +optional
	Allocating corev1.ResourceList `json:"allocating,omitempty"`
	// Allocated is requested by pods on nodes.
	// +optional
	Allocated corev1.ResourceList `json:"allocated,omitempty"`
	// AllocatableModelings counts nodes by grade.
	// +optional
	AllocatableModelings []AllocatableModeling `json:"allocatableModelings,omitempty"`
	// Available is what is left of Allocatable: neither allocated nor allocating, never less than nothing (extension).
	// +optional
	Available corev1.ResourceList `json:"available,omitempty"`
	// Contiguous is what is free on the one node with the most room, so that a pod which requests no more fits
	// somewhere (extension). Taints are not looked at.
	// +optional
	Contiguous corev1.ResourceList `json:"contiguous,omitempty"`
	// NodeClasses are the nodes with what each has free, equal ones merged (extension). Where there were more classes,
	// amounts are rounded down, labels left out in which nodes differ, and at last small classes left out, so nothing
	// is promised that is not there.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	NodeClasses []NodeClass `json:"nodeClasses,omitempty"`
}

// NodeClass are nodes that have the same free resources, labels and taints.
type NodeClass struct {
	// Count of nodes.
	Count int32 `json:"count"`
	// Free is what each of the nodes has at least, pods included.
	Free corev1.ResourceList `json:"free"`
	// Labels that the nodes share. Labels that have another value on nearly every node are left out.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Taints of the nodes with effect NoSchedule or NoExecute.
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`
}

// AllocatableModeling counts nodes of one grade.
type AllocatableModeling struct {
	// Grade is that of a ResourceModel.
	Grade int64 `json:"grade"`
	// Count of nodes.
	Count int `json:"count"`
}

// ExecutionNamespace is the namespace of the Works for a cluster.
func ExecutionNamespace(cluster string) string { return ExecutionNamespacePrefix + cluster }

// ClusterOf tells the cluster that the Works of a namespace are for; false for namespaces that hold none.
func ClusterOf(namespace string) (string, bool) {
	return strings.CutPrefix(namespace, ExecutionNamespacePrefix)
}
