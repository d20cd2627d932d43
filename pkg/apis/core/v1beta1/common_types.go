package v1beta1

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Extension asks for an extension.
type Extension struct {
	// Type of the extension, as a ControllerRegistration names it.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type"`
	// Settings that the extension, not Trellis, understands.
	// +optional
	ProviderConfig *runtime.RawExtension `json:"providerConfig,omitempty" protobuf:"bytes,2,opt,name=providerConfig"`
	// Turns off an extension that would be enabled by default.
	// +optional
	Disabled *bool `json:"disabled,omitempty" protobuf:"bytes,3,opt,name=disabled"`
}

// SeedSelector selects seeds by labels and provider types.
type SeedSelector struct {
	metav1.LabelSelector `json:",inline" protobuf:"bytes,1,opt,name=labelSelector"`
	// Provider types of the seed; "*" is any. Defaults to the type of the shoot's provider.
	// +optional
	ProviderTypes []string `json:"providerTypes,omitempty" protobuf:"bytes,2,opt,name=providerTypes"`
}

// NamedResourceReference gives a name to a referenced object.
type NamedResourceReference struct {
	// Name by which others refer to the object.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
	// The object, in the same namespace.
	ResourceRef autoscalingv1.CrossVersionObjectReference `json:"resourceRef" protobuf:"bytes,2,opt,name=resourceRef"`
}

// Toleration accepts a taint of seeds.
type Toleration struct {
	// Key of the taint.
	Key string `json:"key" protobuf:"bytes,1,opt,name=key"`
	// Value of the taint; any when left out.
	// +optional
	Value *string `json:"value,omitempty" protobuf:"bytes,2,opt,name=value"`
}

// CloudProfileReference refers to a CloudProfile or NamespacedCloudProfile.
type CloudProfileReference struct {
	// CloudProfile or NamespacedCloudProfile.
	Kind string `json:"kind" protobuf:"bytes,1,opt,name=kind"`
	// Name of it; a NamespacedCloudProfile is in the same namespace.
	Name string `json:"name" protobuf:"bytes,2,opt,name=name"`
}

// Condition is one aspect of an object's state.
type Condition struct {
	// Aspect.
	Type ConditionType `json:"type" protobuf:"bytes,1,opt,name=type"`
	// Whether it holds.
	Status ConditionStatus `json:"status" protobuf:"bytes,2,opt,name=status"`
	// When status last changed.
	LastTransitionTime metav1.Time `json:"lastTransitionTime" protobuf:"bytes,3,opt,name=lastTransitionTime"`
	// When anything of the condition last changed.
	LastUpdateTime metav1.Time `json:"lastUpdateTime" protobuf:"bytes,4,opt,name=lastUpdateTime"`
	// Why, as one word in CamelCase.
	Reason string `json:"reason" protobuf:"bytes,5,opt,name=reason"`
	// Why, for humans.
	Message string `json:"message" protobuf:"bytes,6,opt,name=message"`
	// Classes of errors, for programs.
	// +optional
	Codes []ErrorCode `json:"codes,omitempty" protobuf:"bytes,7,opt,name=codes"`
}

// ConditionStatus is whether a condition holds.
type ConditionStatus string

const (
	// ConditionTrue says that the condition holds.
	ConditionTrue ConditionStatus = "True"
	// ConditionFalse says that it does not hold.
	ConditionFalse ConditionStatus = "False"
	// ConditionUnknown says that it could not be told.
	ConditionUnknown ConditionStatus = "Unknown"
	// ConditionProgressing says that it did not hold for a short time only, and may be well again soon.
	ConditionProgressing ConditionStatus = "Progressing"
)

// ErrorCode classifies an error, for programs.
type ErrorCode string

const (
	// ErrorInfraUnauthenticated says that the infrastructure refused the credentials.
	ErrorInfraUnauthenticated ErrorCode = "ERR_INFRA_UNAUTHENTICATED"
	// ErrorInfraUnauthorized says that the credentials lack permissions in the infrastructure.
	ErrorInfraUnauthorized ErrorCode = "ERR_INFRA_UNAUTHORIZED"
	// ErrorInfraQuotaExceeded says that a quota of the infrastructure is used up.
	ErrorInfraQuotaExceeded ErrorCode = "ERR_INFRA_QUOTA_EXCEEDED"
	// ErrorInfraRateLimitsExceeded says that the infrastructure asks for fewer requests.
	ErrorInfraRateLimitsExceeded ErrorCode = "ERR_INFRA_RATE_LIMITS_EXCEEDED"
	// ErrorInfraDependencies says that objects in the infrastructure, which the user has to care for, stand in the way.
	ErrorInfraDependencies ErrorCode = "ERR_INFRA_DEPENDENCIES"
	// ErrorRetryableInfraDependencies says the same, but a later try may succeed.
	ErrorRetryableInfraDependencies ErrorCode = "ERR_RETRYABLE_INFRA_DEPENDENCIES"
	// ErrorInfraResourcesDepleted says that the infrastructure has nothing left of what was asked for.
	ErrorInfraResourcesDepleted ErrorCode = "ERR_INFRA_RESOURCES_DEPLETED"
	// ErrorCleanupClusterResources says that objects in the cluster do not go away.
	ErrorCleanupClusterResources ErrorCode = "ERR_CLEANUP_CLUSTER_RESOURCES"
	// ErrorConfigurationProblem says that the user has to change the configuration.
	ErrorConfigurationProblem ErrorCode = "ERR_CONFIGURATION_PROBLEM"
	// ErrorRetryableConfigurationProblem says the same, but a later try may succeed.
	ErrorRetryableConfigurationProblem ErrorCode = "ERR_RETRYABLE_CONFIGURATION_PROBLEM"
	// ErrorProblematicWebhook says that a webhook in the cluster stands in the way.
	ErrorProblematicWebhook ErrorCode = "ERR_PROBLEMATIC_WEBHOOK"
)

// Gardener names a process that worked on an object.
type Gardener struct {
	// Id of the container.
	ID string `json:"id" protobuf:"bytes,1,opt,name=id"`
	// Name of the pod.
	Name string `json:"name" protobuf:"bytes,2,opt,name=name"`
	// Version of the process.
	Version string `json:"version" protobuf:"bytes,3,opt,name=version"`
}

// LastOperation is what was done last, or is being done.
type LastOperation struct {
	// What is being done, for humans.
	Description string `json:"description" protobuf:"bytes,1,opt,name=description"`
	// When anything of this last changed.
	LastUpdateTime metav1.Time `json:"lastUpdateTime" protobuf:"bytes,2,opt,name=lastUpdateTime"`
	// Percentage that is done, 0 to 100.
	Progress int32 `json:"progress" protobuf:"bytes,3,opt,name=progress"`
	// How it stands.
	State LastOperationState `json:"state" protobuf:"bytes,4,opt,name=state"`
	// What is being done.
	Type LastOperationType `json:"type" protobuf:"bytes,5,opt,name=type"`
}

// LastOperationState is how an operation stands.
type LastOperationState string

const (
	// LastOperationStateProcessing is under way.
	LastOperationStateProcessing LastOperationState = "Processing"
	// LastOperationStateSucceeded is done.
	LastOperationStateSucceeded LastOperationState = "Succeeded"
	// LastOperationStateError has failed and will be tried again.
	LastOperationStateError LastOperationState = "Error"
	// LastOperationStateFailed has failed and will not be tried again by itself.
	LastOperationStateFailed LastOperationState = "Failed"
	// LastOperationStatePending has not begun.
	LastOperationStatePending LastOperationState = "Pending"
	// LastOperationStateAborted was given up.
	LastOperationStateAborted LastOperationState = "Aborted"
)

// LastOperationType is what is done to an object.
type LastOperationType string

const (
	// LastOperationTypeCreate is the first reconciliation.
	LastOperationTypeCreate LastOperationType = "Create"
	// LastOperationTypeReconcile is any later reconciliation.
	LastOperationTypeReconcile LastOperationType = "Reconcile"
	// LastOperationTypeDelete is the deletion.
	LastOperationTypeDelete LastOperationType = "Delete"
	// LastOperationTypeMigrate is the departure from a seed.
	LastOperationTypeMigrate LastOperationType = "Migrate"
	// LastOperationTypeRestore is the arrival in a seed.
	LastOperationTypeRestore LastOperationType = "Restore"
	// LastOperationTypeLiveMigrate is a move between seeds while the API server stays up.
	LastOperationTypeLiveMigrate LastOperationType = "LiveMigrate"
)

// LastError is an error of an operation.
type LastError struct {
	// What failed and why, for humans.
	Description string `json:"description" protobuf:"bytes,1,opt,name=description"`
	// Task that failed.
	// +optional
	TaskID *string `json:"taskID,omitempty" protobuf:"bytes,2,opt,name=taskID"`
	// Classes of errors, for programs.
	// +optional
	Codes []ErrorCode `json:"codes,omitempty" protobuf:"bytes,3,opt,name=codes"`
	// When the error was last seen.
	// +optional
	LastUpdateTime *metav1.Time `json:"lastUpdateTime,omitempty" protobuf:"bytes,4,opt,name=lastUpdateTime"`
}

// AccessRestriction is a restriction on who may access a region's data, such as eu-access-only.
type AccessRestriction struct {
	// Name of the restriction.
	Name string `json:"name" protobuf:"bytes,1,opt,name=name"`
}

// IPFamily is an IP version.
type IPFamily string

const (
	// IPFamilyIPv4 is IP version 4.
	IPFamilyIPv4 IPFamily = "IPv4"
	// IPFamilyIPv6 is IP version 6.
	IPFamilyIPv6 IPFamily = "IPv6"
)

// ConditionType names an aspect of an object's state. The known ones are constants beside the kinds.
type ConditionType string
