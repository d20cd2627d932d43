package registration

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

const (
	// JoinedLabel (value "true") is on Secrets of a fleet whose credentials the fleet renews, and removes when the
	// member leaves.
	JoinedLabel = "federation.trellis.garden/joined"
	// ServiceAccountAnnotation, on such a Secret, is <namespace>/<name> of the member's service account that the token
	// is for.
	ServiceAccountAnnotation = "federation.trellis.garden/service-account"
	// RenewAnnotation, on such a Secret, says when the token is to be renewed (RFC 3339).
	RenewAnnotation = clusterv1alpha1.RenewAnnotation
	// LifetimeAnnotation, on such a Secret, says for how long tokens are asked for (a Go duration).
	LifetimeAnnotation = "federation.trellis.garden/token-lifetime"

	managedByLabel = clusterv1alpha1.ManagedByLabel
	managedBy      = clusterv1alpha1.ManagedByFleet
)

// DefaultTokenLifetime is long enough for a fleet that is stopped for a fortnight; tokens are renewed when half of it
// is over.
const DefaultTokenLifetime = 30 * 24 * time.Hour

// ValidateName checks the name of a new member: the namespace of its Works carries it.
func ValidateName(name string) error {
	if len(validation.IsDNS1123Label(name)) > 0 ||
		len(validation.IsDNS1123Label(clusterv1alpha1.ExecutionNamespace(name))) > 0 {
		return fmt.Errorf("name %q: use up to %d lower-case letters, digits and dashes, beginning and ending with a "+
			"letter or digit",
			name, validation.DNS1123LabelMaxLength-len(clusterv1alpha1.ExecutionNamespacePrefix))
	}
	return nil
}

// validateEndpoint checks an address that people give for an API; the flag is for the error. Empty means another
// source.
func validateEndpoint(flag, endpoint string) error {
	u, err := url.Parse(endpoint)
	switch {
	case endpoint == "":
		return nil
	case err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "":
		return fmt.Errorf("%s %q: write the URL of an API, such as https://api.example.com:6443", flag, endpoint)
	}
	return nil
}

// Identity tells clusters apart: the UID of namespace kube-system.
func Identity(ctx context.Context, cluster client.Reader) (string, error) {
	namespace := &corev1.Namespace{}
	if err := cluster.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace); err != nil {
		return "", fmt.Errorf("reading namespace %s: %w", metav1.NamespaceSystem, err)
	}
	if namespace.UID == "" {
		return "", fmt.Errorf("namespace %s has no UID", metav1.NamespaceSystem)
	}
	return string(namespace.UID), nil
}

// AccessPrefix begins the names of all that fleets have in members, and those of their users there.
const AccessPrefix = "trellis-fleet-"

// NamePrefix is what the names of a fleet's users and groups begin with in its members; it tells fleets apart.
func NamePrefix(fleetID string) string { return AccessName(fleetID) + ":" }

// agentSuffix, behind what AccessName gives, is the access of a fleet's agent.
const agentSuffix = "-agent"

// AgentAccess is the name of all that the agent of a fleet has in its member, and of its namespace.
func AgentAccess(fleetID string) string { return AccessName(fleetID) + agentSuffix }

// AgentNamePrefix is NamePrefix where only the agent's namespace is known.
func AgentNamePrefix(access string) string { return strings.TrimSuffix(access, agentSuffix) + ":" }

// AccessName is that of everything that a fleet has in a member; it tells fleets apart. Deleting the ClusterRole of
// this name in the member deletes all of it.
func AccessName(fleetID string) string {
	short, _, _ := strings.Cut(fleetID, "-")
	if len(short) > 8 {
		short = short[:8]
	}
	return AccessPrefix + strings.ToLower(short)
}

// Duplicate finds another member that is the same cluster; nil if there is none.
func Duplicate(name, id string, clusters []clusterv1alpha1.Cluster) *clusterv1alpha1.Cluster {
	for i := range clusters {
		if c := &clusters[i]; c.Name != name && c.Spec.ID == id && id != "" {
			return c
		}
	}
	return nil
}
