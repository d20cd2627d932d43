package registration

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

const (
	// AgentGroup is the group of all agents in a fleet.
	AgentGroup = "federation.trellis.garden:agents"
	// agentRolePrefix and the member's name are the name of what an agent may do in a fleet.
	agentRolePrefix = "trellis.garden:federation:agent:"
	// invitationPrefix and the member's name are the name of the service account that an agent asks for its certificate
	// with.
	invitationPrefix = "agent-"
)

// Where a fleet tells of its authorities, old and new while they are rotated.
const (
	// AuthorityConfigMap is kept in every namespace by the kube-controller-manager; its key ca.crt has who signs the
	// API server's certificate. Agents read that in the namespace of the members' credentials: who may write there
	// holds all members anyway.
	AuthorityConfigMap = "kube-root-ca.crt"
	// ClientAuthorityConfigMap, in kube-system, is kept by the API server; its key client-ca-file has whose client
	// certificates it accepts.
	ClientAuthorityConfigMap    = "extension-apiserver-authentication"
	ClientAuthorityConfigMapKey = "client-ca-file"
)

// AgentUser is the user that the agent of a member is in the fleet. A member that is registered again under its name
// has another.
func AgentUser(member *clusterv1alpha1.Cluster) string {
	return clusterv1alpha1.AgentUserPrefix + member.Name + ":" + string(member.UID)
}

// InvitedUser is the user that asks for the certificate of a member's agent.
func InvitedUser(member string) string {
	return "system:serviceaccount:" + clusterv1alpha1.CredentialsNamespace + ":" + invitationPrefix + member
}

// ownedBy makes objects go with a member.
func ownedBy(cluster *clusterv1alpha1.Cluster) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: "Cluster", Name: cluster.Name, UID: cluster.UID,
	}
}

// upsert writes an object of the fleet that goes with its owner.
func upsert(ctx context.Context, fleet client.Client, object client.Object, owner metav1.OwnerReference,
	fill func()) error {
	_, err := controllerutil.CreateOrPatch(ctx, fleet, object, func() error {
		object.SetOwnerReferences([]metav1.OwnerReference{owner})
		fill()
		return nil
	})
	if err != nil {
		return fmt.Errorf("%T %s in the fleet: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// grantAgent lets the agent of a member read its Works, and report on them and on the member; nothing of others. All of
// it goes with the Cluster.
func grantAgent(ctx context.Context, fleet client.Client, cluster *clusterv1alpha1.Cluster) error {
	subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: AgentUser(cluster)}
	execution := clusterv1alpha1.ExecutionNamespace(cluster.Name)
	if err := EnsureNamespace(ctx, fleet, execution); err != nil {
		return err
	}
	if err := grantEverywhere(ctx, fleet, cluster, agentRolePrefix+cluster.Name, subject,
		agentRules(cluster.Name)); err != nil {
		return err
	}
	if err := grantIn(ctx, fleet, cluster, execution, subject, workRules()); err != nil {
		return err
	}
	if err := grantIn(ctx, fleet, cluster, clusterv1alpha1.CredentialsNamespace, subject,
		append(leaseRules(cluster.Name), readRules(AuthorityConfigMap)...)); err != nil {
		return err
	}
	if err := grantIn(ctx, fleet, cluster, metav1.NamespaceSystem, subject,
		readRules(ClientAuthorityConfigMap)); err != nil {
		return err
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.CredentialsNamespace, Name: cluster.Name},
	}
	return upsert(ctx, fleet, lease, ownedBy(cluster), func() {})
}

func grantEverywhere(ctx context.Context, fleet client.Client, cluster *clusterv1alpha1.Cluster, name string,
	subject rbacv1.Subject, rules []rbacv1.PolicyRule) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := upsert(ctx, fleet, role, ownedBy(cluster), func() { role.Rules = rules }); err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return upsert(ctx, fleet, binding, ownedBy(cluster), func() {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
		binding.Subjects = []rbacv1.Subject{subject}
	})
}

func grantIn(ctx context.Context, fleet client.Client, cluster *clusterv1alpha1.Cluster, namespace string,
	subject rbacv1.Subject, rules []rbacv1.PolicyRule) error {
	name := agentRolePrefix + cluster.Name
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := upsert(ctx, fleet, role, ownedBy(cluster), func() { role.Rules = rules }); err != nil {
		return err
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return upsert(ctx, fleet, binding, ownedBy(cluster), func() {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
		binding.Subjects = []rbacv1.Subject{subject}
	})
}

// requestRules let agents ask for certificates, and fetch them: without the key they are of no use to others.
func requestRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{certificatesv1.GroupName}, Resources: []string{"certificatesigningrequests"},
			Verbs: []string{"create", "get"},
		},
	}
}

func agentRules(cluster string) []rbacv1.PolicyRule {
	group, only := []string{clusterv1alpha1.GroupVersion.Group}, []string{cluster}
	return append(requestRules(),
		rbacv1.PolicyRule{
			APIGroups: group, Resources: []string{"clusters"}, ResourceNames: only,
			Verbs: []string{"get", "list", "watch"},
		},
		rbacv1.PolicyRule{
			APIGroups: group, Resources: []string{"clusters/status"}, ResourceNames: only, Verbs: []string{"patch"},
		},
		// The tunnel by which the fleet asks for the member's API (package tunnel).
		rbacv1.PolicyRule{
			APIGroups: group, Resources: []string{"clusters/attach"}, ResourceNames: only, Verbs: []string{"create"},
		},
		rbacv1.PolicyRule{APIGroups: []string{"config.karmada.io"},
			Resources: []string{"resourceinterpretercustomizations", "resourceinterpreterwebhookconfigurations"},
			Verbs:     []string{"get", "list", "watch"}},
	)
}

// workRules let agents write finalizers and statuses; the admission policy of agents refuses other changes.
func workRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{"work.karmada.io"}, Resources: []string{"works"},
			Verbs: []string{"get", "list", "watch", "patch"},
		},
		{APIGroups: []string{"work.karmada.io"}, Resources: []string{"works/status"}, Verbs: []string{"patch"}},
	}
}

func leaseRules(name string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: []string{name},
			Verbs: []string{"patch"},
		},
	}
}

// readRules let agents read a ConfigMap that tells of authorities.
func readRules(configMap string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{configMap},
			Verbs: []string{"get"},
		},
	}
}
