package registration

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/apply"
	"github.com/trellis-garden/trellis/pkg/component"
)

const (
	// InvitationSecret, in the agent's namespace, holds what it asks to be accepted with.
	InvitationSecret = "invitation"
	// Keys of that Secret.
	InvitationKubeconfig = "kubeconfig"
	InvitationMember     = "member"
	InvitationUID        = "uid"

	agentName = "agent"
	// ImpersonatorAccount, in the agent's namespace, may be users of the fleet, and nothing else.
	ImpersonatorAccount = "impersonator"
	agentHealthPort     = 8081
	agentMetricsPort    = 8080
	// writeSuffix, behind the name of an agent's access, is what it may do in the namespaces that it is bound to.
	writeSuffix = "-write"
)

// CredentialsSecret, in the agent's namespace, holds all that an agent has to remember.
const CredentialsSecret = "credentials"

// invitationHash, on the agent's pods, is of the invitation that they were started with.
const invitationHash = "federation.trellis.garden/invitation-hash"

// HashOf an invitation's kubeconfig tells invitations apart.
func HashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// AgentOptions say how an agent runs in its member.
type AgentOptions struct {
	// Image of the federation controllers.
	Image string
	// Allowance is what the fleet may manage.
	Allowance
	// ServeAPI has users of the fleet use the member's API through it. Who takes over the agent, or the account with
	// which it does so, may then be any user and group in the whole member, whatever the allowance says.
	ServeAPI bool
	// Kubernetes is the version of the member's, empty if it is not known. From 1.36 on nobody becomes one of
	// system:masters.
	Kubernetes string
}

// Validate tells which option is wrong.
func (o AgentOptions) Validate() error {
	if o.Kubernetes != "" {
		if _, err := version.ParseGeneric(o.Kubernetes); err != nil {
			return fmt.Errorf("--kubernetes-version %q: write a version, such as v1.36.2", o.Kubernetes)
		}
	}
	return o.Allowance.Validate()
}

// Manifest is what an agent consists of in its member, in the order in which it is created. Applying it is how the
// owner of the member accepts the fleet, so what the fleet may do is all in it.
func (i *Invitation) Manifest(options AgentOptions) []client.Object {
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: i.Access}},
		&corev1.ServiceAccount{
			ObjectMeta:                   metav1.ObjectMeta{Namespace: i.Access, Name: agentName},
			AutomountServiceAccountToken: new(false),
		},
	}
	objects = append(objects, i.access(options)...)
	if options.ServeAPI {
		objects = append(objects, i.impersonation(options)...)
	}
	objects = append(objects, i.secret(), i.deployment(options))
	for _, object := range objects {
		object.SetLabels(map[string]string{managedByLabel: managedBy})
	}
	return objects
}

func (i *Invitation) secret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: i.Access, Name: InvitationSecret},
		Data: map[string][]byte{
			InvitationKubeconfig: i.Kubeconfig, InvitationMember: []byte(i.Member), InvitationUID: []byte(i.UID),
		},
	}
}

// access is everything, or with namespaces: lists and watches everywhere, which capacity and what is applied need,
// everything in these, and what the agent itself needs in its own. Elsewhere it may not get: that would be exec in pods
// (before Kubernetes 1.35) and what kubelets do for who may get nodes/proxy.
func (i *Invitation) access(options AgentOptions) []client.Object {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: i.Access, Name: agentName}}
	toRole := func(name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: i.Access}, Rules: accessRules()}
	objects := []client.Object{
		role, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: i.Access}, RoleRef: toRole(i.Access), Subjects: subjects,
		},
	}
	if len(options.Namespaces) == 0 {
		return objects
	}
	role.Rules = []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
		{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}},
		{
			APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{i.Access},
			Verbs: []string{"delete"},
		},
		{
			APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles", "clusterrolebindings"},
			ResourceNames: i.everywhere(), Verbs: []string{"get", "patch"},
		},
	}
	write := i.Access + writeSuffix
	objects = append(objects, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: write},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		}})
	for _, namespace := range options.Namespaces {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
			&rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: i.Access}, RoleRef: toRole(write),
				Subjects: subjects,
			})
	}
	return append(objects, i.ownAccess(options.ServeAPI, subjects)...)
}

// ownAccess is what an agent with bounds may write in its own namespace. It can make no pods and no tokens there, by
// which it would be another account. For that its Secret is there before it writes into it.
func (i *Invitation) ownAccess(servesAPI bool, subjects []rbacv1.Subject) []client.Object {
	meta := metav1.ObjectMeta{Namespace: i.Access, Name: i.Access}
	rules := []rbacv1.PolicyRule{
		{
			APIGroups: []string{""}, Resources: []string{"secrets"},
			ResourceNames: []string{CredentialsSecret, InvitationSecret}, Verbs: []string{"get"},
		},
		{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{CredentialsSecret},
			Verbs: []string{"patch"},
		},
	}
	if servesAPI {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"},
			ResourceNames: []string{ImpersonatorAccount}, Verbs: []string{"create"},
		})
	}
	return []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: i.Access, Name: CredentialsSecret}},
		&rbacv1.Role{ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		},
	}
}

// impersonation is by whom the agent asks for users of the fleet who use the member's API through it. What they may do
// is up to the member's roles; administrators of the fleet are those of the member if the agent is bound to nothing:
// they can make themselves such by what they propagate.
func (i *Invitation) impersonation(options AgentOptions) []client.Object {
	rules := impersonatorRules(options.Kubernetes)
	if options.Kubernetes == "" {
		rules = append(modeRules(), plainRules()...)
	}
	name := ImpersonatorName(i.Access)
	bound := func(name, role string, subjects ...rbacv1.Subject) client.Object {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}
	}
	objects := []client.Object{
		&corev1.ServiceAccount{
			ObjectMeta:                   metav1.ObjectMeta{Namespace: i.Access, Name: ImpersonatorAccount},
			AutomountServiceAccountToken: new(false),
		},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
		bound(name, name,
			rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: i.Access, Name: ImpersonatorAccount}),
	}
	if !options.Bounded() {
		objects = append(objects, bound(AdminsName(name), clusterAdmin, adminSubjects(AgentNamePrefix(i.Access))...))
	}
	return objects
}

// everywhere are the names of all that an agent has in the whole member.
func (i *Invitation) everywhere() []string {
	var names []string
	for _, object := range rightsEverywhere(i.Access) {
		names = append(names, object.GetName())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (i *Invitation) deployment(options AgentOptions) *appsv1.Deployment {
	selector := map[string]string{"app.kubernetes.io/name": "trellis-agent"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: i.Access, Name: agentName},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), RevisionHistoryLimit: new(int32(1)),
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{
				// Another invitation starts the agent anew: it may lead to another address, or pin another authority.
				ObjectMeta: metav1.ObjectMeta{
					Labels: selector, Annotations: map[string]string{invitationHash: HashOf(i.Kubeconfig)},
				},
				Spec: corev1.PodSpec{
					ServiceAccountName: agentName, AutomountServiceAccountToken: new(true),
					EnableServiceLinks: new(false),
					SecurityContext: &corev1.PodSecurityContext{
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
					Containers: []corev1.Container{i.container(options)},
				},
			},
		},
	}
}

func (i *Invitation) container(options AgentOptions) corev1.Container {
	arguments := []string{"agent", "--namespace=" + i.Access}
	if len(options.Namespaces) > 0 {
		arguments = append(arguments, "--allow-namespaces="+strings.Join(options.Namespaces, ","))
	}
	if len(options.Kinds) > 0 {
		arguments = append(arguments, "--allow-kinds="+strings.Join(options.Kinds, ","))
	}
	hardened := component.HardenedContainer()
	hardened.RunAsNonRoot, hardened.RunAsUser = new(true), new(int64(65532))
	return corev1.Container{
		Name: agentName, Image: options.Image, Args: arguments,
		Env: []corev1.EnvVar{{Name: "GOMEMLIMIT", Value: "256MiB"}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("48Mi"),
			},
		},
		SecurityContext: hardened,
		Ports: []corev1.ContainerPort{
			{Name: "metrics", ContainerPort: agentMetricsPort, Protocol: corev1.ProtocolTCP},
		},
		StartupProbe:  component.Healthz(agentHealthPort).Startup(),
		LivenessProbe: component.Healthz(agentHealthPort).Liveness(),
	}
}

// YAML prints objects as kubectl takes them.
func YAML(scheme *runtime.Scheme, objects []client.Object) ([]byte, error) {
	var text strings.Builder
	for _, object := range objects {
		plain, err := apply.ToUnstructured(scheme, object)
		if err != nil {
			return nil, err
		}
		encoded, err := yaml.Marshal(plain.Object)
		if err != nil {
			return nil, err
		}
		text.WriteString("---\n")
		text.Write(encoded)
	}
	return []byte(text.String()), nil
}

// ApplyManifest brings an agent into a member.
func ApplyManifest(ctx context.Context, member client.Client, objects []client.Object) error {
	if err := apply.Objects(ctx, member, apply.Trellisctl, objects...); err != nil {
		return fmt.Errorf("in the member: %w", err)
	}
	return nil
}

// RemoveAgent takes an agent out of its member: what it may do in other namespaces, then the namespace that it runs in.
// Its rights in the whole cluster go with that namespace, which comes to own them here: an agent can't delete the role
// that its rights come from once it has deleted the binding to it, nor the binding without the role.
func RemoveAgent(ctx context.Context, member client.Client, access string) error {
	var bindings rbacv1.RoleBindingList
	if err := member.List(ctx, &bindings, client.MatchingLabels{managedByLabel: managedBy}); err != nil {
		return fmt.Errorf("listing the agent's rights: %w", err)
	}
	for i := range bindings.Items {
		b := &bindings.Items[i]
		if b.Name != access || b.Namespace == access {
			continue
		}
		if err := member.Delete(ctx, b); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing RoleBinding %s: %w", client.ObjectKeyFromObject(b), err)
		}
	}
	namespace := &corev1.Namespace{}
	if err := member.Get(ctx, client.ObjectKey{Name: access}, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	for _, right := range rightsEverywhere(access) {
		if err := setOwner(ctx, member, right, namespace); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("having %T %s removed with namespace %s: %w", right, right.GetName(), access, err)
		}
	}
	if err := member.Delete(ctx, namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing namespace %s: %w", access, err)
	}
	return nil
}

// rightsEverywhere are all that an agent may have in the whole member; those that it works with itself are the last.
func rightsEverywhere(access string) []client.Object {
	role := func(name string) client.Object {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	binding := func(name string) client.Object {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	impersonator := ImpersonatorName(access)
	return []client.Object{
		binding(AdminsName(impersonator)), binding(impersonator), role(impersonator), role(access + writeSuffix),
		role(access), binding(access),
	}
}

// setOwner has an object removed with its namespace.
func setOwner(ctx context.Context, member client.Client, object client.Object, owner *corev1.Namespace) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Namespace", Name: owner.Name, UID: owner.UID},
	}}})
	if err != nil {
		return err
	}
	return member.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}
