package admission

import (
	"context"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// ProjectMutatorName is the name of the plugin that fills in who created and who owns a project.
const ProjectMutatorName = "ProjectMutator"

// projectMutator makes the creator of a project its owner unless another owner is named, and the owner a member.
type projectMutator struct{ *admission.Handler }

var _ admission.MutationInterface = &projectMutator{}

func newProjectMutator() *projectMutator {
	return &projectMutator{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Admit implements admission.MutationInterface.
func (p *projectMutator) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	project, ok := a.GetObject().(*gardencorev1beta1.Project)
	if !ok || a.GetSubresource() != "" {
		return nil
	}
	if a.GetOperation() == admission.Create {
		project.Spec.CreatedBy = subjectOf(a.GetUserInfo())
		if project.Spec.Owner == nil {
			project.Spec.Owner = ownerAmong(project.Spec.Members)
		}
		if project.Spec.Owner == nil {
			project.Spec.Owner = project.Spec.CreatedBy.DeepCopy()
		}
	}
	addOwnerAsMember(project)
	return nil
}

// subjectOf names a user as RBAC does.
func subjectOf(info user.Info) *rbacv1.Subject {
	if namespace, name, err := serviceaccount.SplitUsername(info.GetName()); err == nil {
		return &rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	return &rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: info.GetName()}
}

func ownerAmong(members []gardencorev1beta1.ProjectMember) *rbacv1.Subject {
	for _, member := range members {
		if member.Role == gardencorev1beta1.ProjectMemberOwner ||
			slices.Contains(member.Roles, gardencorev1beta1.ProjectMemberOwner) {
			return member.Subject.DeepCopy()
		}
	}
	return nil
}

// addOwnerAsMember gives the owner the roles admin and owner, and takes the role owner from everybody else.
func addOwnerAsMember(project *gardencorev1beta1.Project) {
	owner := project.Spec.Owner
	if owner == nil {
		return
	}
	found := false
	for i := range project.Spec.Members {
		member := &project.Spec.Members[i]
		if sameSubject(member.Subject, *owner) {
			found = true
			addRole(member, gardencorev1beta1.ProjectMemberAdmin)
			addRole(member, gardencorev1beta1.ProjectMemberOwner)
			continue
		}
		member.Roles = slices.DeleteFunc(member.Roles,
			func(role string) bool { return role == gardencorev1beta1.ProjectMemberOwner })
	}
	if !found {
		project.Spec.Members = append(project.Spec.Members, gardencorev1beta1.ProjectMember{
			Subject: *owner,
			Role:    gardencorev1beta1.ProjectMemberAdmin,
			Roles:   []string{gardencorev1beta1.ProjectMemberOwner},
		})
	}
}

func addRole(member *gardencorev1beta1.ProjectMember, role string) {
	switch {
	case member.Role == role || slices.Contains(member.Roles, role):
	case member.Role == "":
		member.Role = role
	default:
		member.Roles = append(member.Roles, role)
	}
}

// sameSubject compares subjects as RBAC does: a service account may also be named as the user it authenticates as.
func sameSubject(a, b rbacv1.Subject) bool { return userName(a) == userName(b) }

func userName(subject rbacv1.Subject) string {
	if subject.Kind == rbacv1.ServiceAccountKind {
		return rbacv1.UserKind + "/" + serviceaccount.MakeUsername(subject.Namespace, subject.Name)
	}
	return strings.Join([]string{subject.Kind, subject.Name}, "/")
}
