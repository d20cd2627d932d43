package v1alpha1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CronFederatedHPA scales an object, or changes the limits of a FederatedHPA, by the clock.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=cronfederatedhpas,scope=Namespaced,shortName=cronfhpa,categories={karmada-io}
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.kind`,name="Reference-Kind",type=string
// +kubebuilder:printcolumn:JSONPath=`.spec.scaleTargetRef.name`,name="Reference-Name",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
// +kubebuilder:printcolumn:JSONPath=`.status.executionHistories[*].problem`,name="Problem",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.executionHistories[?(@.lastFailure)].ruleName`,name="Failed-Rule",type=string
// +kubebuilder:printcolumn:JSONPath=`.status.executionHistories[*].lastFailure`,name="Failure",type=string,priority=1
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type CronFederatedHPA struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is scaled, and when.
	Spec CronFederatedHPASpec `json:"spec"`
	// What was done; written by controllers.
	// +optional
	Status CronFederatedHPAStatus `json:"status,omitempty"`
}

// CronFederatedHPAList is a list of CronFederatedHPAs.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type CronFederatedHPAList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []CronFederatedHPA `json:"items"`
}

// CronFederatedHPASpec says what is scaled, and when.
//
// +kubebuilder:validation:XValidation:rule="!has(self.scaleTargetRef.apiVersion) || !self.scaleTargetRef.apiVersion.startsWith('autoscaling.karmada.io/') || self.scaleTargetRef.kind == 'FederatedHPA'",message="of this group, only a FederatedHPA can be scaled",fieldPath=".scaleTargetRef"
// +kubebuilder:validation:XValidation:rule="has(self.scaleTargetRef.apiVersion) && self.scaleTargetRef.apiVersion.startsWith('autoscaling.karmada.io/') || self.rules.all(r, has(r.targetReplicas))",message="rules need targetReplicas",fieldPath=".rules"
// +kubebuilder:validation:XValidation:rule="has(self.scaleTargetRef.apiVersion) && self.scaleTargetRef.apiVersion.startsWith('autoscaling.karmada.io/') || self.rules.all(r, !has(r.targetMinReplicas) && !has(r.targetMaxReplicas))",message="targetMinReplicas and targetMaxReplicas are limits of a FederatedHPA: name one in scaleTargetRef, or leave them out",fieldPath=".rules"
// +kubebuilder:validation:XValidation:rule="!has(self.scaleTargetRef.apiVersion) || !self.scaleTargetRef.apiVersion.startsWith('autoscaling.karmada.io/') || self.rules.all(r, has(r.targetMinReplicas) || has(r.targetMaxReplicas))",message="rules for a FederatedHPA need targetMinReplicas, targetMaxReplicas or both",fieldPath=".rules"
// +kubebuilder:validation:XValidation:rule="!has(self.scaleTargetRef.apiVersion) || !self.scaleTargetRef.apiVersion.startsWith('autoscaling.karmada.io/') || self.rules.all(r, !has(r.targetReplicas))",message="targetReplicas is for objects with replicas of their own: leave it out for a FederatedHPA",fieldPath=".rules"
type CronFederatedHPASpec struct {
	// ScaleTargetRef names an object that has the subresource scale, or a FederatedHPA, whose limits are set.
	ScaleTargetRef autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`
	// Rules say when. Their names are unique.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	Rules []CronFederatedHPARule `json:"rules"`
}

// CronFederatedHPARule scales at certain times.
//
// +kubebuilder:validation:XValidation:rule="!has(self.targetMinReplicas) || !has(self.targetMaxReplicas) || self.targetMinReplicas <= self.targetMaxReplicas",message="must not be more than targetMaxReplicas",fieldPath=".targetMinReplicas"
type CronFederatedHPARule struct {
	// Name identifies the rule and its history.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`
	// Schedule has five fields, as in a CronJob: minute, hour, day of the month, month, day of the week. @hourly,
	// @daily, @weekly, @monthly, @yearly and @annually are known.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|[[:space:]]*[^[:space:]]+([[:space:]]+[^[:space:]]+){4}[[:space:]]*)$')",message="must have five fields (minute, hour, day of the month, month, day of the week), or be one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually"
	Schedule string `json:"schedule"`
	// TargetReplicas is the number of replicas that is set. Refused for a FederatedHPA.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TargetReplicas *int32 `json:"targetReplicas,omitempty"`
	// TargetMinReplicas is what minReplicas of a FederatedHPA becomes. Refused for other objects.
	// +kubebuilder:validation:Minimum=1
	// +optional
	TargetMinReplicas *int32 `json:"targetMinReplicas,omitempty"`
	// TargetMaxReplicas is what maxReplicas of a FederatedHPA becomes. Refused for other objects.
	// +kubebuilder:validation:Minimum=1
	// +optional
	TargetMaxReplicas *int32 `json:"targetMaxReplicas,omitempty"`
	// Suspend stops the rule. What it misses is not made up for. Default: false.
	// +kubebuilder:default=false
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
	// TimeZone of the schedule, for example Europe/Berlin. Absent: UTC.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == '' || timestamp('2000-01-01T12:00:00Z').getFullYear(self) > 0",message="must be a time zone such as Europe/Berlin"
	// +optional
	TimeZone *string `json:"timeZone,omitempty"`
	// SuccessfulHistoryLimit is how many executions that succeeded are kept in the status. Default: 3.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	// +optional
	SuccessfulHistoryLimit *int32 `json:"successfulHistoryLimit,omitempty"`
	// FailedHistoryLimit is how many executions that failed are kept in the status. Default: 3.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=32
	// +optional
	FailedHistoryLimit *int32 `json:"failedHistoryLimit,omitempty"`
}

// CronFederatedHPAStatus tells what was done.
type CronFederatedHPAStatus struct {
	// ExecutionHistories has an entry per rule.
	// +optional
	ExecutionHistories []ExecutionHistory `json:"executionHistories,omitempty"`
}

// ExecutionHistory is that of one rule.
type ExecutionHistory struct {
	// RuleName is the name of the rule.
	RuleName string `json:"ruleName"`
	// NextExecutionTime is when the rule acts next; absent while it is suspended.
	// +optional
	NextExecutionTime *metav1.Time `json:"nextExecutionTime,omitempty"`
	// Problem says why the rule never acts: its field that is wrong. Karmada has no such field.
	// +optional
	Problem string `json:"problem,omitempty"`
	// LastFailure says why the last execution failed; absent if it did not. Karmada has no such field.
	// +optional
	LastFailure string `json:"lastFailure,omitempty"`
	// SuccessfulExecutions that were last, the latest first.
	// +optional
	SuccessfulExecutions []SuccessfulExecution `json:"successfulExecutions,omitempty"`
	// FailedExecutions that were last, the latest first.
	// +optional
	FailedExecutions []FailedExecution `json:"failedExecutions,omitempty"`
}

// SuccessfulExecution is one that did what the rule says.
type SuccessfulExecution struct {
	// ScheduleTime is when it should have been.
	ScheduleTime *metav1.Time `json:"scheduleTime"`
	// ExecutionTime is when it was.
	ExecutionTime *metav1.Time `json:"executionTime"`
	// AppliedReplicas is what was set.
	// +optional
	AppliedReplicas *int32 `json:"appliedReplicas,omitempty"`
	// AppliedMaxReplicas is what maxReplicas of a FederatedHPA was set to.
	// +optional
	AppliedMaxReplicas *int32 `json:"appliedMaxReplicas,omitempty"`
	// AppliedMinReplicas is what minReplicas of a FederatedHPA was set to.
	// +optional
	AppliedMinReplicas *int32 `json:"appliedMinReplicas,omitempty"`
}

// FailedExecution is one that could not do what the rule says.
type FailedExecution struct {
	// ScheduleTime is when it should have been.
	ScheduleTime *metav1.Time `json:"scheduleTime"`
	// ExecutionTime is when it was.
	ExecutionTime *metav1.Time `json:"executionTime"`
	// Message says why.
	Message string `json:"message"`
}
