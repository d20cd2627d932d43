package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// CustomVerbAuthorizerName is the name of the plugin that asks for custom verbs.
const CustomVerbAuthorizerName = "CustomVerbAuthorizer"

// Custom verbs: permissions for a part of an object, besides that to change the object.
const (
	verbModifyTolerationsWhitelist = "modify-spec-tolerations-whitelist"
	verbManageMembers              = "manage-members"
	verbModifyKubernetes           = "modify-spec-kubernetes"
	verbModifyMachineImages        = "modify-spec-machineimages"
	verbModifyProviderConfig       = "modify-spec-providerconfig"
	verbRaiseLimits                = "raise-spec-limits"
	verbMarkSelfHosted             = "mark-self-hosted"
)

// verbNeeded is a custom verb with the field that a write changes and that needs it.
type verbNeeded struct {
	verb string
	path *field.Path
}

// customVerbAuthorizer asks for custom verbs where a write changes what not everybody who may write the object may
// change.
type customVerbAuthorizer struct {
	*admission.Handler
	dependent
}

var _ admission.ValidationInterface = &customVerbAuthorizer{}

func newCustomVerbAuthorizer() *customVerbAuthorizer {
	return &customVerbAuthorizer{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// Validate implements admission.ValidationInterface.
func (c *customVerbAuthorizer) Validate(ctx context.Context, a admission.Attributes,
	_ admission.ObjectInterfaces) error {
	for _, needed := range customVerbs(a) {
		if !c.may(ctx, a.GetUserInfo(), permissionOn(a, needed.verb)) {
			return admission.NewForbidden(a, fmt.Errorf("%s: user %q needs the custom verb %s on %s to change it",
				needed.path, a.GetUserInfo().GetName(), needed.verb, a.GetResource().GroupResource()))
		}
	}
	return nil
}

// customVerbs returns the custom verbs that a write needs.
func customVerbs(a admission.Attributes) []verbNeeded {
	if project, old, ok := written[*gardencorev1beta1.Project](a); ok {
		return verbsForProject(project, old, a.GetUserInfo())
	}
	if profile, old, ok := written[*gardencorev1beta1.NamespacedCloudProfile](a); ok {
		return verbsForProfile(profile, old)
	}
	if shoot, old, ok := written[*gardencorev1beta1.Shoot](a); ok && gardencorev1beta1.IsSelfHosted(shoot) &&
		(old == nil || !gardencorev1beta1.IsSelfHosted(old)) {
		return []verbNeeded{{verbMarkSelfHosted, field.NewPath("spec", "provider", "workers")}}
	}
	return nil
}

func verbsForProject(project, old *gardencorev1beta1.Project, caller user.Info) []verbNeeded {
	if old == nil {
		old = &gardencorev1beta1.Project{
			Spec: gardencorev1beta1.ProjectSpec{Owner: project.Spec.Owner, Members: ownMembership(project)},
		}
	}
	var needed []verbNeeded
	if !apiequality.Semantic.DeepEqual(whitelistOf(project), whitelistOf(old)) {
		needed = append(needed, verbNeeded{
			verbModifyTolerationsWhitelist, field.NewPath("spec", "tolerations", "whitelist"),
		})
	}
	isOwner := old.Spec.Owner != nil && userName(*subjectOf(caller)) == userName(*old.Spec.Owner)
	if !isOwner && !apiequality.Semantic.DeepEqual(managedRoles(project), managedRoles(old)) {
		needed = append(needed, verbNeeded{verbManageMembers, field.NewPath("spec", "members")})
	}
	return needed
}

// ownMembership returns the entry of the owner: to found a project and belong to it needs no further permission.
func ownMembership(project *gardencorev1beta1.Project) []gardencorev1beta1.ProjectMember {
	return slices.DeleteFunc(slices.Clone(project.Spec.Members), func(member gardencorev1beta1.ProjectMember) bool {
		return project.Spec.Owner == nil || !sameSubject(member.Subject, *project.Spec.Owner)
	})
}

func whitelistOf(project *gardencorev1beta1.Project) []gardencorev1beta1.Toleration {
	if project.Spec.Tolerations == nil {
		return nil
	}
	return project.Spec.Tolerations.Whitelist
}

// delegableRoles are what an admin has, and so may give to the automation of the own project.
var delegableRoles = sets.New(gardencorev1beta1.ProjectMemberAdmin, gardencorev1beta1.ProjectMemberViewer)

// managedRoles returns the roles of members that only those change who manage members: all roles of users, groups and
// service accounts of elsewhere. Service accounts of the project's namespace serve its automation; who may change the
// project gives them what admins have. More would let an admin become through a token what no manager of members has
// made of them.
func managedRoles(project *gardencorev1beta1.Project) map[string][]string {
	roles := map[string][]string{}
	for _, member := range project.Spec.Members {
		key := userName(member.Subject)
		given := append([]string{member.Role}, member.Roles...)
		if isOwnAccount(project, member.Subject) {
			given = slices.DeleteFunc(given, delegableRoles.Has)
		}
		if len(given) == 0 {
			continue
		}
		roles[key] = append(roles[key], given...)
		slices.Sort(roles[key])
		roles[key] = slices.Compact(roles[key])
	}
	return roles
}

// isOwnAccount tells whether a subject, in either of its spellings, is a service account of the project's namespace.
func isOwnAccount(project *gardencorev1beta1.Project, subject rbacv1.Subject) bool {
	namespace := ptr.Deref(project.Spec.Namespace, "")
	return namespace != "" && strings.HasPrefix(userName(subject),
		rbacv1.UserKind+"/"+serviceaccount.MakeUsername(namespace, ""))
}

func verbsForProfile(profile, old *gardencorev1beta1.NamespacedCloudProfile) []verbNeeded {
	if old == nil {
		old = &gardencorev1beta1.NamespacedCloudProfile{}
	}
	spec := field.NewPath("spec")
	var needed []verbNeeded
	for _, part := range []struct {
		verbNeeded
		is, was any
	}{
		{verbNeeded{verbModifyKubernetes, spec.Child("kubernetes")}, profile.Spec.Kubernetes, old.Spec.Kubernetes},
		{
			verbNeeded{verbModifyMachineImages, spec.Child("machineImages")}, profile.Spec.MachineImages,
			old.Spec.MachineImages,
		},
		{
			verbNeeded{verbModifyProviderConfig, spec.Child("providerConfig")}, profile.Spec.ProviderConfig,
			old.Spec.ProviderConfig,
		},
	} {
		if !apiequality.Semantic.DeepEqual(part.is, part.was) {
			needed = append(needed, part.verbNeeded)
		}
	}
	if maxNodes(profile) > maxNodes(old) {
		needed = append(needed, verbNeeded{verbRaiseLimits, spec.Child("limits", "maxNodesTotal")})
	}
	return needed
}

func maxNodes(profile *gardencorev1beta1.NamespacedCloudProfile) int32 {
	if profile.Spec.Limits == nil {
		return 0
	}
	return ptr.Deref(profile.Spec.Limits.MaxNodesTotal, 0)
}
