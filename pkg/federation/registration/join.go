package registration

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// Description of a new member.
type Description struct {
	Name     string
	Provider string
	Region   string
	Zones    []string
	Labels   map[string]string
}

// JoinOptions say how the fleet reaches a member.
type JoinOptions struct {
	Description
	// Endpoint of the member's API as the fleet's processes reach it; empty for the one of the kubeconfig.
	Endpoint string
	// ProxyURL is a proxy on the way from the fleet.
	ProxyURL string
	// TokenLifetime is how long the fleet's tokens are asked to be valid.
	TokenLifetime time.Duration
	// Timeout bounds the wait until the fleet has reached the member; none means not to wait.
	Timeout time.Duration
	// Tell is told about progress.
	Tell func(format string, arguments ...any)
}

// Join makes the cluster that config leads to a member that the fleet talks to. Joining a member again under its name
// renews its credentials and description.
func Join(ctx context.Context, fleet, member client.Client, config *rest.Config, options JoinOptions) error {
	if err := ValidateName(options.Name); err != nil {
		return err
	}
	if err := validateEndpoint("--endpoint", options.Endpoint); err != nil {
		return err
	}
	authority, err := authorityOf(config, options.Endpoint)
	if err != nil {
		return err
	}
	id, err := Identity(ctx, member)
	if err != nil {
		return fmt.Errorf("the cluster to join does not answer as it should; check its kubeconfig with `kubectl get "+
			"namespaces`: %w", err)
	}
	if err := checkName(ctx, fleet, options.Name, id, clusterv1alpha1.Push); err != nil {
		return err
	}
	fleetID, err := Identity(ctx, fleet)
	if err != nil {
		return fmt.Errorf("the fleet does not answer as it should: %w", err)
	}
	access := AccessName(fleetID)
	options.Tell("Granting the fleet access to the cluster (ClusterRole, namespace and service account %s)", access)
	account, err := GrantAccess(ctx, member, access)
	if err != nil {
		return fmt.Errorf("%w; joining needs the rights of a cluster administrator there", err)
	}
	token, err := RequestToken(ctx, member, account, options.TokenLifetime)
	if err != nil {
		return err
	}
	options.Tell("Storing credentials in the fleet, renewed by the fleet from half of their life on (valid until %s)",
		token.ExpirationTimestamp.UTC().Format(time.RFC3339))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.CredentialsNamespace, Name: options.Name},
	}
	if err := EnsureNamespace(ctx, fleet, secret.Namespace); err != nil {
		return err
	}
	if _, err := controllerutil.CreateOrPatch(ctx, fleet, secret, func() error {
		secret.Data = map[string][]byte{clusterv1alpha1.SecretCABundle: authority}
		SetToken(secret, token, account, options.TokenLifetime, time.Now())
		return nil
	}); err != nil {
		return fmt.Errorf("secret %s in the fleet: %w", client.ObjectKeyFromObject(secret), err)
	}
	if err := writeCluster(ctx, fleet, id, config, options); err != nil {
		return err
	}
	return waitReachable(ctx, fleet, options)
}

// authorityOf reads the certificates that a cluster's API is known by. The server's name of a kubeconfig belongs to its
// address: who gives another endpoint has the certificate checked against that.
func authorityOf(config *rest.Config, endpoint string) ([]byte, error) {
	switch {
	case config.ServerName != "" && endpoint == "":
		return nil, fmt.Errorf("the kubeconfig sets tls-server-name, which fleets don't: give an address that the "+
			"server's certificate is for, "+
			"such as https://%s (join: --endpoint, register: --fleet-endpoint)", config.ServerName)
	case config.Insecure:
		return nil, nil
	case len(config.CAData) == 0 && config.CAFile != "":
		return os.ReadFile(config.CAFile)
	}
	return config.CAData, nil
}

// checkName refuses names that another cluster has, and clusters that are members already.
func checkName(ctx context.Context, fleet client.Client, name, id string, mode clusterv1alpha1.SyncMode) error {
	var list clusterv1alpha1.ClusterList
	if err := fleet.List(ctx, &list); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return fmt.Errorf("this API serves no members (kind Cluster): is it that of a fleet? %w", err)
		}
		return fmt.Errorf("listing the members of the fleet: %w", err)
	}
	if other := Duplicate(name, id, list.Items); other != nil {
		return fmt.Errorf("this cluster is a member already, as %q; to give it another name, let it leave first: "+
			"`trellisctl unjoin %s`", other.Name, other.Name)
	}
	for i := range list.Items {
		c := &list.Items[i]
		if c.Name != name {
			continue
		}
		switch {
		case c.DeletionTimestamp != nil:
			return fmt.Errorf("member %q is still leaving the fleet; try again when `kubectl get cluster %s` finds "+
				"it no more", name, name)
		case c.Labels[clusterv1alpha1.ShootLabel] != "":
			return fmt.Errorf("member %q is a shoot of the fleet's project; choose another name", name)
		case c.Spec.ID != id || c.Spec.SyncMode != mode:
			return fmt.Errorf("the fleet has another member %q; choose another name, or let that one leave first: "+
				"`trellisctl unjoin %s`", name, name)
		}
	}
	return nil
}

// EnsureNamespace makes a namespace of a fleet unless it is there.
func EnsureNamespace(ctx context.Context, fleet client.Client, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err := fleet.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	if apierrors.IsNotFound(err) {
		err = fleet.Create(ctx, namespace)
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("namespace %s in the fleet: %w", name, err)
	}
	return nil
}

func writeCluster(ctx context.Context, fleet client.Client, id string, config *rest.Config, options JoinOptions) error {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: options.Name}}
	if err := putCluster(ctx, fleet, cluster, func() {
		options.describe(cluster)
		cluster.Spec.ID, cluster.Spec.SyncMode = id, clusterv1alpha1.Push
		cluster.Spec.APIEndpoint = config.Host
		if options.Endpoint != "" {
			cluster.Spec.APIEndpoint = options.Endpoint
		}
		cluster.Spec.ProxyURL = options.ProxyURL
		cluster.Spec.InsecureSkipTLSVerification = config.Insecure
		cluster.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{
			Namespace: clusterv1alpha1.CredentialsNamespace, Name: options.Name,
		}
	}); err != nil {
		return fmt.Errorf("member %s in the fleet: %w", options.Name, err)
	}
	options.Tell("Registered %s, reached at %s", cluster.Name, cluster.Spec.APIEndpoint)
	if config.Insecure {
		options.Tell("Warning: the kubeconfig accepts any server certificate, so the fleet will too " +
			"(spec.insecureSkipTLSVerification)")
	}
	if isLoopback(cluster.Spec.APIEndpoint) {
		options.Tell("Warning: that address means the fleet's own machine to the fleet; --endpoint gives another")
	}
	return nil
}

// describe leaves what is not given as it is.
func (d Description) describe(cluster *clusterv1alpha1.Cluster) {
	for key, value := range d.Labels {
		metav1.SetMetaDataLabel(&cluster.ObjectMeta, key, value)
	}
	if d.Provider != "" {
		cluster.Spec.Provider = d.Provider
	}
	if d.Region != "" {
		cluster.Spec.Region = d.Region
	}
	if len(d.Zones) > 0 {
		cluster.Spec.Zones = d.Zones
	}
}

func isLoopback(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// waitReachable waits until the fleet's processes have reached the member.
func waitReachable(ctx context.Context, fleet client.Client, options JoinOptions) error {
	if options.Timeout == 0 {
		return nil
	}
	options.Tell("Waiting until the fleet reaches %s", options.Name)
	ready, err := waitReady(ctx, fleet, options.Name, options.Timeout)
	if err != nil {
		return fmt.Errorf("%w; the registration stays: the fleet goes on trying, and `trellisctl unjoin %s` takes "+
			"it back. "+
			"Is the address right that the fleet's processes have to reach (--endpoint, --proxy-url)?", err,
			options.Name)
	}
	options.Tell("%s is a member: %s", options.Name, ready)
	return nil
}

// transient drops what the end of a wait makes of requests.
func transient(ctx context.Context, err error) error {
	if deadline, bounded := ctx.Deadline(); bounded && time.Until(deadline) < time.Second {
		return nil
	}
	return err
}

func waitReady(ctx context.Context, fleet client.Client, name string, timeout time.Duration) (string, error) {
	cluster := &clusterv1alpha1.Cluster{}
	last := "the fleet's processes have not looked at it; is the fleet hibernated?"
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, timeout, true,
		func(ctx context.Context) (bool, error) {
			if err := fleet.Get(ctx, types.NamespacedName{Name: name}, cluster); err != nil {
				return false, client.IgnoreNotFound(transient(ctx, err))
			}
			ready := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
			if ready != nil {
				last = ready.Message
			}
			return ready != nil && ready.Status == metav1.ConditionTrue && cluster.Status.KubernetesVersion != "", nil
		})
	if wait.Interrupted(err) {
		return "", fmt.Errorf("%s is not ready after %s: %s", name, timeout, last)
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Kubernetes %s, %d APIs", cluster.Status.KubernetesVersion, len(cluster.Status.APIEnablements)),
		nil
}

// putCluster creates a Cluster, or changes the one that is there. (controllerutil.CreateOrPatch copies what it reads as
// JSON, in which the grades of a status have no place: they are unsigned.)
func putCluster(ctx context.Context, fleet client.Client, cluster *clusterv1alpha1.Cluster, fill func()) error {
	err := fleet.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)
	if apierrors.IsNotFound(err) {
		fill()
		return fleet.Create(ctx, cluster)
	}
	if err != nil {
		return err
	}
	before := cluster.DeepCopy()
	fill()
	return fleet.Patch(ctx, cluster, client.MergeFrom(before))
}
