package v1alpha1

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceInterpreterWebhookConfiguration names webhooks that answer for kinds that the fleet does not know.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=resourceinterpreterwebhookconfigurations,scope=Cluster,categories={karmada-io}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ResourceInterpreterWebhookConfiguration struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Webhooks are asked in this order; the first whose rules match answers.
	// +kubebuilder:validation:MaxItems=64
	Webhooks []ResourceInterpreterWebhook `json:"webhooks"`
}

// ResourceInterpreterWebhookConfigurationList is a list of ResourceInterpreterWebhookConfigurations.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ResourceInterpreterWebhookConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []ResourceInterpreterWebhookConfiguration `json:"items"`
}

// ResourceInterpreterWebhook is one webhook, and what it answers for.
//
// +kubebuilder:validation:XValidation:rule="has(self.clientConfig.url) || has(self.clientConfig.service)",message="needs a url or a service",fieldPath=".clientConfig"
// +kubebuilder:validation:XValidation:rule="!has(self.clientConfig.url) || self.clientConfig.url.startsWith('https://')",message="must begin with https://",fieldPath=".clientConfig.url"
type ResourceInterpreterWebhook struct {
	// Name tells the webhook apart in messages, for example workloads.example.com.
	Name string `json:"name"`
	// ClientConfig says where the webhook listens, and which authorities its certificate may be from. A fleet has no
	// nodes, so url is the usual form; a service must exist in the fleet with an external name or an address that the
	// fleet's controllers reach.
	ClientConfig admissionregistrationv1.WebhookClientConfig `json:"clientConfig"`
	// Rules say which operations on which kinds the webhook answers; one that matches is enough.
	// +optional
	Rules []RuleWithOperations `json:"rules,omitempty"`
	// TimeoutSeconds is how long an answer is waited for. Default: 10.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=30
	// +kubebuilder:default=10
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
	// InterpreterContextVersions are the versions of ResourceInterpreterContext that the webhook reads; v1alpha1 must
	// be one.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="'v1alpha1' in self",message="must contain v1alpha1"
	InterpreterContextVersions []string `json:"interpreterContextVersions"`
}

// RuleWithOperations is what a webhook answers for.
type RuleWithOperations struct {
	// Operations that are asked; "*" stands for all.
	Operations []InterpreterOperation `json:"operations"`
	// Rule names the kinds.
	Rule `json:",inline"`
}

// InterpreterOperation is a question about an object.
//
// +kubebuilder:validation:Enum="*";InterpretReplica;InterpretComponent;ReviseReplica;InterpretStatus;Prune;Retain;AggregateStatus;InterpretHealth;InterpretDependency
type InterpreterOperation string

// Values of InterpreterOperation.
const (
	// InterpreterOperationAll stands for every operation.
	InterpreterOperationAll InterpreterOperation = "*"
	// InterpreterOperationInterpretReplica asks how many replicas there are and what one needs.
	InterpreterOperationInterpretReplica InterpreterOperation = "InterpretReplica"
	// InterpreterOperationInterpretComponent asks for the parts that have replicas of their own.
	InterpreterOperationInterpretComponent InterpreterOperation = "InterpretComponent"
	// InterpreterOperationReviseReplica asks for the object with another number of replicas.
	InterpreterOperationReviseReplica InterpreterOperation = "ReviseReplica"
	// InterpreterOperationInterpretStatus asks for the status of an object in a member.
	InterpreterOperationInterpretStatus InterpreterOperation = "InterpretStatus"
	// InterpreterOperationPrune asks for the object without what only belongs to the fleet.
	InterpreterOperationPrune InterpreterOperation = "Prune"
	// InterpreterOperationRetain asks for the wanted object with what the member decides about.
	InterpreterOperationRetain InterpreterOperation = "Retain"
	// InterpreterOperationAggregateStatus asks for the object with the statuses of all members added up.
	InterpreterOperationAggregateStatus InterpreterOperation = "AggregateStatus"
	// InterpreterOperationInterpretHealth asks whether an object in a member is healthy.
	InterpreterOperationInterpretHealth InterpreterOperation = "InterpretHealth"
	// InterpreterOperationInterpretDependency asks which objects an object refers to.
	InterpreterOperationInterpretDependency InterpreterOperation = "InterpretDependency"
)

// Rule names kinds by group, version and kind; all three must match.
type Rule struct {
	// APIGroups of the kinds; "" is that of Pods, "*" stands for all.
	APIGroups []string `json:"apiGroups"`
	// APIVersions of the kinds, without their group; "*" stands for all.
	APIVersions []string `json:"apiVersions"`
	// Kinds; "*" stands for all.
	Kinds []string `json:"kinds"`
}
