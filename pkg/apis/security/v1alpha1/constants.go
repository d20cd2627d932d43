package v1alpha1

// WorkloadIdentitySubjectPrefix begins subjects of tokens: gardener.cloud:workloadidentity:<namespace>:<name>:<uid>.
const WorkloadIdentitySubjectPrefix = "gardener.cloud:workloadidentity:"
