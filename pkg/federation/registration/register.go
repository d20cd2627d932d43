package registration

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// RegisterOptions describe a member that is to have an agent.
type RegisterOptions struct {
	Description
	// Endpoint of the fleet's API as the agent reaches it; empty for the one of the fleet's kubeconfig.
	Endpoint string
	// TokenLifetime is how long the invitation may be used, at least ten minutes.
	TokenLifetime time.Duration
}

// Invitation is what an agent needs to ask to be accepted.
type Invitation struct {
	// Member and UID are the name and the UID of its Cluster.
	Member, UID string
	// Access is the name of what the agent has in the member. It tells fleets apart.
	Access string
	// Kubeconfig leads to the fleet, with a token that is good for asking for a certificate only.
	Kubeconfig []byte
	// Expires is when the token does.
	Expires time.Time
}

// Register makes a member that waits for its agent, and invites that. Registering it again gives another invitation,
// and an agent that was accepted the rights that agents have now.
func Register(ctx context.Context, fleet client.Client, config *rest.Config,
	options RegisterOptions) (*Invitation, error) {
	if err := ValidateName(options.Name); err != nil {
		return nil, err
	}
	if err := validateEndpoint("--fleet-endpoint", options.Endpoint); err != nil {
		return nil, err
	}
	authority, err := authorityOf(config, options.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("the fleet's kubeconfig: %w", err)
	}
	fleetID, err := Identity(ctx, fleet)
	if err != nil {
		return nil, fmt.Errorf("the fleet does not answer as it should: %w", err)
	}
	cluster, err := expect(ctx, fleet, options.Description)
	if err != nil {
		return nil, err
	}
	if cluster.Spec.ID != "" {
		// An agent that was accepted before comes to run in another version, which may need other rights.
		if err := grantAgent(ctx, fleet, cluster); err != nil {
			return nil, err
		}
	}
	token, expires, err := invite(ctx, fleet, cluster, options.TokenLifetime)
	if err != nil {
		return nil, err
	}
	endpoint := options.Endpoint
	if endpoint == "" {
		endpoint = config.Host
	}
	kubeconfig, err := kubeconfigOf(endpoint, authority, config.Insecure, token)
	if err != nil {
		return nil, err
	}
	return &Invitation{
		Member: cluster.Name, UID: string(cluster.UID), Access: AgentAccess(fleetID), Kubeconfig: kubeconfig,
		Expires: expires,
	}, nil
}

// expect makes the Cluster, or finds the one that was registered before.
func expect(ctx context.Context, fleet client.Client, description Description) (*clusterv1alpha1.Cluster, error) {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: description.Name}}
	err := fleet.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("member %s: is this the API of a fleet? %w", description.Name, err)
	case err == nil && cluster.DeletionTimestamp != nil:
		return nil, fmt.Errorf("member %q is still leaving the fleet; try again when `kubectl get cluster %s` finds "+
			"it no more", cluster.Name, cluster.Name)
	case err == nil && cluster.Spec.SyncMode != clusterv1alpha1.Pull:
		return nil, fmt.Errorf("the fleet has another member %q, to which it talks itself; choose another name, or "+
			"let that one leave first: `trellisctl unjoin %s`", cluster.Name, cluster.Name)
	}
	if err := putCluster(ctx, fleet, cluster, func() {
		description.describe(cluster)
		cluster.Spec.SyncMode = clusterv1alpha1.Pull
	}); err != nil {
		return nil, fmt.Errorf("member %s in the fleet: %w", cluster.Name, err)
	}
	return cluster, nil
}

// invite makes a token with which an agent may ask for its certificate, and nothing else.
func invite(ctx context.Context, fleet client.Client, cluster *clusterv1alpha1.Cluster,
	lifetime time.Duration) (string, time.Time, error) {
	if err := EnsureNamespace(ctx, fleet, clusterv1alpha1.CredentialsNamespace); err != nil {
		return "", time.Time{}, err
	}
	account := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: clusterv1alpha1.CredentialsNamespace, Name: invitationPrefix + cluster.Name,
		},
	}
	if err := upsert(ctx, fleet, account, ownedBy(cluster),
		func() { account.AutomountServiceAccountToken = new(false) }); err != nil {
		return "", time.Time{}, err
	}
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}
	if err := grantEverywhere(ctx, fleet, cluster, "trellis.garden:federation:invited:"+cluster.Name, subject,
		requestRules()); err != nil {
		return "", time.Time{}, err
	}
	token, err := RequestToken(ctx, fleet, types.NamespacedName{Namespace: account.Namespace, Name: account.Name},
		lifetime)
	if err != nil {
		return "", time.Time{}, err
	}
	return token.Token, token.ExpirationTimestamp.Time, nil
}

func kubeconfigOf(endpoint string, authority []byte, insecure bool, token string) ([]byte, error) {
	const name = "fleet"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server: endpoint, CertificateAuthorityData: authority, InsecureSkipTLSVerify: insecure,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}
