package csrapprover

import (
	"context"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// agentsOfFleets is what is watched in fleets only.
const agentsOfFleets = "agent of a member"

// agents are those of a fleet's members. What may not be approved mostly never may, so it is looked at again with the
// next watch only: an agent renews days before its certificate expires. New agents are accepted by people.
func agents(fleet client.Reader) requesters {
	known := &members{fleet: fleet}
	return requesters{
		who:      agentsOfFleets,
		signer:   certificatesv1.KubeAPIServerClientSignerName,
		label:    clusterv1alpha1.MemberLabel,
		approval: "The agent renews its own certificate, for a member that has it still.",
		check: func(csr *certificatesv1.CertificateSigningRequest) (question, error) {
			if !strings.HasPrefix(csr.Spec.Username, clusterv1alpha1.AgentUserPrefix) {
				return nil, nil
			}
			renewal, err := registration.ParseAgentRenewal(csr)
			return func(ctx context.Context) (string, error) { return known.refusal(ctx, renewal) }, err
		},
	}
}

// members knows the Clusters of a fleet. It is for one goroutine.
//
// The federation process may write them. So they decide whether an agent goes on, and never whose name its certificate
// has: that is the one of the certificate that the agent asks with.
type members struct {
	fleet client.Reader
	found recent[*clusterv1alpha1.Cluster]
}

// refusal says why an agent may not have another certificate; empty when it may.
func (m *members) refusal(ctx context.Context, renewal registration.AgentRenewal) (string, error) {
	cluster, err := m.found.get(renewal.Member,
		func() (*clusterv1alpha1.Cluster, error) { return m.read(ctx, renewal.Member) })
	if apierrors.IsNotFound(err) {
		return "the fleet has no member of this name", nil
	}
	if err != nil {
		return "", err
	}
	return renewal.Refusal(cluster), nil
}

// read asks for the version that the fleet's kube-apiserver serves by itself. Clients of shoots do not know the kind.
func (m *members) read(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	object, cluster := &unstructured.Unstructured{}, &clusterv1alpha1.Cluster{}
	object.SetGroupVersionKind(clusterv1alpha1.GroupVersion.WithKind("Cluster"))
	if err := m.fleet.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return nil, fmt.Errorf("member %s: %w", name, err)
	}
	return cluster, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, cluster)
}
