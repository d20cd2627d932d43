package v1beta1

import rbacv1 "k8s.io/api/rbac/v1"

// SetDefaultsProject sets what a Project has when nothing is said.
func SetDefaultsProject(project *Project) {
	spec := &project.Spec
	setDefaultsSubject(spec.Owner)
	setDefaultsSubject(spec.CreatedBy)
	for i := range spec.Members {
		setDefaultsSubject(&spec.Members[i].Subject)
	}
	for i := range spec.DualApprovalForDeletion {
		setDefault(&spec.DualApprovalForDeletion[i].IncludeServiceAccounts, true)
	}
}

// setDefaultsSubject sets the API group as RBAC does.
func setDefaultsSubject(subject *rbacv1.Subject) {
	if subject == nil || subject.APIGroup != "" {
		return
	}
	if subject.Kind == rbacv1.UserKind || subject.Kind == rbacv1.GroupKind {
		subject.APIGroup = rbacv1.GroupName
	}
}
