package registration

import (
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// AgentRenewal is what an accepted agent asks for: another certificate for itself.
type AgentRenewal struct {
	// Member and UID are the name and the UID of its Cluster.
	Member, UID string
	// ID of the cluster that it says to run for.
	ID string
}

// ParseAgentRenewal checks all that a request says about itself. The fleet's API knows who asks by the certificate that
// the agent has; it may have another one for the same user, and nothing else.
func ParseAgentRenewal(request *certificatesv1.CertificateSigningRequest) (AgentRenewal, error) {
	name, isAgent := strings.CutPrefix(request.Spec.Username, clusterv1alpha1.AgentUserPrefix)
	member, uid, _ := strings.Cut(name, ":")
	if !isAgent || ValidateName(member) != nil || uid == "" || !slices.Contains(request.Spec.Groups, AgentGroup) {
		return AgentRenewal{}, fmt.Errorf("request %s: %q is no agent", request.Name, request.Spec.Username)
	}
	parsed, err := parseRequest(request)
	if err != nil {
		return AgentRenewal{}, err
	}
	if err := checkRequest(request, parsed, member, request.Spec.Username); err != nil {
		return AgentRenewal{}, err
	}
	return AgentRenewal{Member: member, UID: uid, ID: request.Annotations[IDAnnotation]}, nil
}

// Refusal says why the agent may not have another certificate, by the Cluster of its name; empty when it may.
func (r AgentRenewal) Refusal(cluster *clusterv1alpha1.Cluster) string {
	switch {
	case string(cluster.UID) != r.UID:
		return "the agent was that of an earlier member of this name"
	case cluster.DeletionTimestamp != nil:
		return "the member leaves the fleet"
	case cluster.Spec.SyncMode != clusterv1alpha1.Pull:
		return "the member has no agent (spec.syncMode)"
	case r.ID == "" || r.ID != cluster.Spec.ID:
		return "the agent runs for another cluster than the one that was accepted (spec.id)"
	}
	return ""
}
