package v1alpha1

// WorkloadIdentitySubjectPrefix begins subjects of tokens: gardener.cloud:workloadidentity:<namespace>:<name>:<uid>.
const WorkloadIdentitySubjectPrefix = "gardener.cloud:workloadidentity:"

// Labels of Secrets in seeds that hold a token of a WorkloadIdentity.
const (
	// LabelPurpose tells what a Secret is for.
	LabelPurpose = "security.gardener.cloud/purpose"
	// LabelPurposeWorkloadIdentityTokenRequestor is the purpose of Secrets whose token gardenlet requests and renews.
	LabelPurposeWorkloadIdentityTokenRequestor = "workload-identity-token-requestor"
	// LabelWorkloadIdentityProvider is the type of the identity's target system.
	LabelWorkloadIdentityProvider = "workloadidentity.security.gardener.cloud/provider"
	// LabelWorkloadIdentityReferenced is "true" if a Shoot refers to the identity in spec.resources.
	LabelWorkloadIdentityReferenced = "workloadidentity.security.gardener.cloud/referenced"
)

// Annotations of these Secrets.
const (
	// AnnotationWorkloadIdentityNamespace and AnnotationWorkloadIdentityName tell where the identity is in the garden.
	AnnotationWorkloadIdentityNamespace = "workloadidentity.security.gardener.cloud/namespace"
	AnnotationWorkloadIdentityName      = "workloadidentity.security.gardener.cloud/name"
	// AnnotationWorkloadIdentityContextObject is the ContextObject, as JSON, for whose sake the token is requested.
	AnnotationWorkloadIdentityContextObject = "workloadidentity.security.gardener.cloud/context-object"
	// AnnotationWorkloadIdentityTokenRenewTimestamp is when the token is to be replaced, as RFC 3339 has it.
	AnnotationWorkloadIdentityTokenRenewTimestamp = "workloadidentity.security.gardener.cloud/token-renew-timestamp"
)

// Keys of these Secrets.
const (
	// DataKeyToken holds the token.
	DataKeyToken = "token"
	// DataKeyConfig holds the settings of the target system: the identity's spec.targetSystem.providerConfig.
	DataKeyConfig = "config"
)
