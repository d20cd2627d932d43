package v1beta1

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Project groups the shoots, credentials and members of a team in one namespace of the garden.
type Project struct {
	metav1.TypeMeta `json:",inline"`
	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// What is wanted.
	// +optional
	Spec ProjectSpec `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	// What was observed; written by controllers.
	// +optional
	Status ProjectStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ProjectList is a list of Project objects.
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	// The objects.
	Items []Project `json:"items" protobuf:"bytes,2,opt,name=items"`
}

// ProjectSpec is who is in a Project and what it may do.
type ProjectSpec struct {
	// Who created the project. Immutable.
	// +optional
	CreatedBy *rbacv1.Subject `json:"createdBy,omitempty" protobuf:"bytes,1,opt,name=createdBy"`
	// What the project is about.
	// +optional
	Description *string `json:"description,omitempty" protobuf:"bytes,2,opt,name=description"`
	// Whom to ask; always a member. Cannot be unset.
	// +optional
	Owner *rbacv1.Subject `json:"owner,omitempty" protobuf:"bytes,3,opt,name=owner"`
	// What the project is for.
	// +optional
	Purpose *string `json:"purpose,omitempty" protobuf:"bytes,4,opt,name=purpose"`
	// Who may do what.
	// +optional
	Members []ProjectMember `json:"members,omitempty" protobuf:"bytes,5,opt,name=members"`
	// Namespace of the project, beginning with garden-. Defaults to a new namespace garden-<project>. Immutable.
	// +optional
	Namespace *string `json:"namespace,omitempty" protobuf:"bytes,6,opt,name=namespace"`
	// Taints of seeds that shoots of the project accept.
	// +optional
	Tolerations *ProjectTolerations `json:"tolerations,omitempty" protobuf:"bytes,7,opt,name=tolerations"`
	// What can be deleted only with a second person's consent.
	// +optional
	DualApprovalForDeletion []DualApprovalForDeletion `json:"dualApprovalForDeletion,omitempty" protobuf:"bytes,8,opt,name=dualApprovalForDeletion"`
}

// ProjectMember is a subject with its roles.
type ProjectMember struct {
	rbacv1.Subject `json:",inline" protobuf:"bytes,1,opt,name=subject"`
	// First role: owner, admin, viewer, uam, serviceaccountmanager or extension:<name>.
	Role string `json:"role" protobuf:"bytes,2,opt,name=role"`
	// Further roles.
	// +optional
	Roles []string `json:"roles,omitempty" protobuf:"bytes,3,opt,name=roles"`
}

// ProjectTolerations says what taints of seeds shoots of a project accept.
type ProjectTolerations struct {
	// Added to every shoot.
	// +optional
	// +patchMergeKey=key
	// +patchStrategy=merge
	Defaults []Toleration `json:"defaults,omitempty" patchStrategy:"merge" patchMergeKey:"key" protobuf:"bytes,1,opt,name=defaults"`
	// May be added to a shoot.
	// +optional
	// +patchMergeKey=key
	// +patchStrategy=merge
	Whitelist []Toleration `json:"whitelist,omitempty" patchStrategy:"merge" patchMergeKey:"key" protobuf:"bytes,2,opt,name=whitelist"`
}

// DualApprovalForDeletion names resources that can be deleted only with a second person's consent.
type DualApprovalForDeletion struct {
	// Plural name of the resource: shoots.
	Resource string `json:"resource" protobuf:"bytes,1,opt,name=resource"`
	// Selects the objects by labels.
	Selector metav1.LabelSelector `json:"selector" protobuf:"bytes,2,opt,name=selector"`
	// Whether deletions by service accounts need consent too. Defaults to true.
	// +optional
	IncludeServiceAccounts *bool `json:"includeServiceAccounts,omitempty" protobuf:"bytes,3,opt,name=includeServiceAccounts"`
}

// ProjectStatus is what was last observed of a Project.
type ProjectStatus struct {
	// Generation of the specification that was last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"bytes,1,opt,name=observedGeneration"`
	// Where the project is in its life.
	// +optional
	Phase ProjectPhase `json:"phase,omitempty" protobuf:"bytes,2,opt,name=phase"`
	// Since when the project has been unused.
	// +optional
	StaleSinceTimestamp *metav1.Time `json:"staleSinceTimestamp,omitempty" protobuf:"bytes,3,opt,name=staleSinceTimestamp"`
	// When the unused project will be deleted.
	// +optional
	StaleAutoDeleteTimestamp *metav1.Time `json:"staleAutoDeleteTimestamp,omitempty" protobuf:"bytes,4,opt,name=staleAutoDeleteTimestamp"`
	// When something was last changed in the project.
	// +optional
	LastActivityTimestamp *metav1.Time `json:"lastActivityTimestamp,omitempty" protobuf:"bytes,5,opt,name=lastActivityTimestamp"`
	// Health, one entry per type.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type" protobuf:"bytes,6,opt,name=conditions"`
}

// ProjectPhase is where a project is in its life.
type ProjectPhase string

const (
	// ProjectPending is not worked on yet.
	ProjectPending ProjectPhase = "Pending"
	// ProjectReady can be used.
	ProjectReady ProjectPhase = "Ready"
	// ProjectFailed could not be reconciled; will be tried again.
	ProjectFailed ProjectPhase = "Failed"
	// ProjectTerminating is being deleted.
	ProjectTerminating ProjectPhase = "Terminating"
)
