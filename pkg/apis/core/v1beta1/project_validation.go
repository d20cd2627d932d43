package v1beta1

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	pathvalidation "k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// MaxProjectNameLength is the most characters that a project's name may have; it is part of the names of its
	// shoots' control planes.
	MaxProjectNameLength = 10
	// maxExtensionRoleLength is the most characters of a role that an extension defines.
	maxExtensionRoleLength = 20
)

var projectMemberRoles = []string{
	ProjectMemberAdmin, ProjectMemberViewer, ProjectMemberUserAccessManager, ProjectMemberServiceAccountManager,
	ProjectMemberOwner,
}

// ValidateProject checks a Project on its own.
func ValidateProject(project *Project) field.ErrorList {
	errs := validateMeta(&project.ObjectMeta, false, apivalidation.NameIsDNSLabel)
	name := field.NewPath("metadata", "name")
	if len(project.Name) > MaxProjectNameLength {
		errs = append(errs, field.TooLong(name, project.Name, MaxProjectNameLength))
	}
	errs = append(errs, validateNoDoubleDash(project.Name, name)...)
	return append(errs, validateProjectSpec(&project.Spec, field.NewPath("spec"))...)
}

// ValidateProjectUpdate checks a change of a Project.
func ValidateProjectUpdate(project, old *Project) field.ErrorList {
	errs := validateMetaUpdate(&project.ObjectMeta, &old.ObjectMeta)
	spec := field.NewPath("spec")
	errs = append(errs, validateImmutableOnceSet(project.Spec.Namespace, old.Spec.Namespace,
		spec.Child("namespace"))...)
	errs = append(errs, validateImmutableOnceSet(project.Spec.CreatedBy, old.Spec.CreatedBy,
		spec.Child("createdBy"))...)
	if old.Spec.Owner != nil && project.Spec.Owner == nil {
		errs = append(errs, field.Required(spec.Child("owner"), "the owner can be changed, not removed"))
	}
	return append(errs, ValidateProject(project)...)
}

// validateNoDoubleDash refuses what would make shoot--<project>--<name> ambiguous.
func validateNoDoubleDash(name string, path *field.Path) field.ErrorList {
	if !strings.Contains(name, "--") {
		return nil
	}
	return field.ErrorList{
		field.Invalid(path, name,
			`must not contain "--", which separates project and shoot in names of control planes`),
	}
}

func validateProjectSpec(spec *ProjectSpec, path *field.Path) field.ErrorList {
	errs := validateProjectNamespace(spec.Namespace, path.Child("namespace"))
	if spec.CreatedBy != nil {
		errs = append(errs, validateSubject(spec.CreatedBy, path.Child("createdBy"))...)
	}
	if spec.Owner != nil {
		errs = append(errs, validateSubject(spec.Owner, path.Child("owner"))...)
	}
	errs = append(errs, validateProjectMembers(spec.Members, path.Child("members"))...)
	if spec.Tolerations != nil {
		tolerations := path.Child("tolerations")
		errs = append(errs, validateTolerations(spec.Tolerations.Defaults, tolerations.Child("defaults"))...)
		errs = append(errs, validateTolerations(spec.Tolerations.Whitelist, tolerations.Child("whitelist"))...)
	}
	for i := range spec.DualApprovalForDeletion {
		approval, at := &spec.DualApprovalForDeletion[i], path.Child("dualApprovalForDeletion").Index(i)
		errs = append(errs, validateSupported(approval.Resource, []string{"shoots"}, at.Child("resource"))...)
		errs = append(errs, validateSelector(&approval.Selector, at.Child("selector"))...)
	}
	return errs
}

func validateProjectNamespace(namespace *string, path *field.Path) field.ErrorList {
	if namespace == nil || *namespace == GardenNamespace {
		return nil
	}
	errs := validateLabel(*namespace, path)
	if !strings.HasPrefix(*namespace, ProjectNamePrefix) {
		errs = append(errs, field.Invalid(path, *namespace,
			fmt.Sprintf("must begin with %q; leave it out to get a new namespace", ProjectNamePrefix)))
	}
	return errs
}

func validateProjectMembers(members []ProjectMember, path *field.Path) field.ErrorList {
	errs := validateUnique(members, func(m ProjectMember) rbacv1.Subject { return m.Subject }, path.Index)
	owners := 0
	for i := range members {
		member, at := &members[i], path.Index(i)
		errs = append(errs, validateSubject(&member.Subject, at)...)
		errs = append(errs, validateMemberRole(member.Role, at.Child("role"))...)
		for j, role := range member.Roles {
			errs = append(errs, validateMemberRole(role, at.Child("roles").Index(j))...)
		}
		errs = append(errs, validateUniqueStrings(append([]string{member.Role}, member.Roles...), at.Child("roles"))...)
		if member.Role == ProjectMemberOwner || slices.Contains(member.Roles, ProjectMemberOwner) {
			if owners++; owners > 1 {
				errs = append(errs, field.Forbidden(at.Child("roles"),
					"only one member can have role "+ProjectMemberOwner))
			}
		}
	}
	return errs
}

func validateMemberRole(role string, path *field.Path) field.ErrorList {
	extension, ok := strings.CutPrefix(role, ProjectMemberExtensionPrefix)
	if !ok {
		return validateSupported(role, append(slices.Clone(projectMemberRoles), ProjectMemberExtensionPrefix+"<name>"),
			path)
	}
	if extension == "" || len(extension) > maxExtensionRoleLength {
		return field.ErrorList{
			field.Invalid(path, role, fmt.Sprintf("must have 1 to %d characters after %s", maxExtensionRoleLength,
				ProjectMemberExtensionPrefix)),
		}
	}
	var errs field.ErrorList
	for _, message := range pathvalidation.IsValidPathSegmentName(extension) {
		errs = append(errs, field.Invalid(path, role, message)) // it becomes part of the name of a ClusterRole
	}
	return errs
}

func validateSubject(subject *rbacv1.Subject, path *field.Path) field.ErrorList {
	errs := validateSupported(subject.Kind, []string{rbacv1.UserKind, rbacv1.GroupKind, rbacv1.ServiceAccountKind},
		path.Child("kind"))
	errs = append(errs, validateRequired(subject.Name, path.Child("name"),
		"name the user, group or service account")...)
	if subject.Kind == rbacv1.ServiceAccountKind {
		errs = append(errs, validateRequired(subject.Namespace, path.Child("namespace"),
			"name the namespace of the service account")...)
		if subject.APIGroup != "" {
			errs = append(errs, field.Invalid(path.Child("apiGroup"), subject.APIGroup,
				"must be empty for service accounts"))
		}
	} else if subject.APIGroup != rbacv1.GroupName {
		errs = append(errs, validateSupported(subject.APIGroup, []string{rbacv1.GroupName}, path.Child("apiGroup"))...)
	}
	return errs
}
