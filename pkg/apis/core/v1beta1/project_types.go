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
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is wanted.
	// +optional
	Spec ProjectSpec `json:"spec,omitempty"`
	// What was observed; written by controllers.
	// +optional
	Status ProjectStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ProjectList is a list of Project objects.
type ProjectList struct {
	metav1.TypeMeta `json:",inline"`
	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The objects.
	Items []Project `json:"items"`
}

// ProjectSpec is who is in a Project and what it may do.
type ProjectSpec struct {
	// Who created the project. Immutable.
	// +optional
	CreatedBy *rbacv1.Subject `json:"createdBy,omitempty"`
	// What the project is about.
	// +optional
	Description *string `json:"description,omitempty"`
	// Whom to ask; always a member. Cannot be unset.
	// +optional
	Owner *rbacv1.Subject `json:"owner,omitempty"`
	// What the project is for.
	// +optional
	Purpose *string `json:"purpose,omitempty"`
	// Who may do what.
	// +optional
	Members []ProjectMember `json:"members,omitempty"`
	// Namespace of the project, beginning with garden-. Defaults to a new namespace garden-<project>. Immutable.
	// +optional
	Namespace *string `json:"namespace,omitempty"`
	// Taints of seeds that shoots of the project accept.
	// +optional
	Tolerations *ProjectTolerations `json:"tolerations,omitempty"`
	// What can be deleted only with a second person's consent.
	// +optional
	DualApprovalForDeletion []DualApprovalForDeletion `json:"dualApprovalForDeletion,omitempty"`
}

// ProjectMember is a subject with its roles.
type ProjectMember struct {
	rbacv1.Subject `json:",inline"`
	// First role: owner, admin, viewer, uam, serviceaccountmanager or extension:<name>.
	Role string `json:"role"`
	// Further roles.
	// +optional
	Roles []string `json:"roles,omitempty"`
}

// ProjectTolerations says what taints of seeds shoots of a project accept.
type ProjectTolerations struct {
	// Added to every shoot.
	// +optional
	Defaults []Toleration `json:"defaults,omitempty"`
	// May be added to a shoot.
	// +optional
	Whitelist []Toleration `json:"whitelist,omitempty"`
}

// DualApprovalForDeletion names resources that can be deleted only with a second person's consent.
type DualApprovalForDeletion struct {
	// Plural name of the resource: shoots.
	Resource string `json:"resource"`
	// Selects the objects by labels.
	Selector metav1.LabelSelector `json:"selector"`
	// Whether deletions by service accounts need consent too. Defaults to true.
	// +optional
	IncludeServiceAccounts *bool `json:"includeServiceAccounts,omitempty"`
}

// ProjectStatus is what was last observed of a Project.
type ProjectStatus struct {
	// Generation of the specification that was last worked on.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Where the project is in its life.
	// +optional
	Phase ProjectPhase `json:"phase,omitempty"`
	// Since when the project has been unused.
	// +optional
	StaleSinceTimestamp *metav1.Time `json:"staleSinceTimestamp,omitempty"`
	// When the unused project will be deleted.
	// +optional
	StaleAutoDeleteTimestamp *metav1.Time `json:"staleAutoDeleteTimestamp,omitempty"`
	// When something was last changed in the project.
	// +optional
	LastActivityTimestamp *metav1.Time `json:"lastActivityTimestamp,omitempty"`
	// Health, one entry per type.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	Conditions []Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
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
