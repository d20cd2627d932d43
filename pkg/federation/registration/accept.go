package registration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// Candidate is an agent that waits to be accepted, or was.
type Candidate struct {
	Member string
	// ID and Version of the cluster that it says to run for.
	ID, Version string
	// Fingerprint of its key; its log shows the same.
	Fingerprint string
	Since       time.Time
	// Accepted before.
	Accepted bool
	request  *certificatesv1.CertificateSigningRequest
}

// Candidates lists the agents that wait, of one member or, without a name, of all. Requests that are not what agents
// ask for are left out.
func Candidates(ctx context.Context, fleet client.Client, name string) ([]Candidate, error) {
	all, err := invitedAgents(ctx, fleet, name)
	return slices.DeleteFunc(all, func(c Candidate) bool { return c.Accepted }), err
}

// Accepted lists the agents of a member that were accepted as long as the fleet's API remembers: for an hour.
func Accepted(ctx context.Context, fleet client.Client, name string) ([]Candidate, error) {
	all, err := invitedAgents(ctx, fleet, name)
	return slices.DeleteFunc(all, func(c Candidate) bool { return !c.Accepted }), err
}

func invitedAgents(ctx context.Context, fleet client.Client, name string) ([]Candidate, error) {
	selection := []client.ListOption{client.HasLabels{clusterv1alpha1.MemberLabel}}
	if name != "" {
		selection = append(selection, client.MatchingLabels{clusterv1alpha1.MemberLabel: name})
	}
	var list certificatesv1.CertificateSigningRequestList
	if err := fleet.List(ctx, &list, selection...); err != nil {
		return nil, fmt.Errorf("listing the requests of agents: %w", err)
	}
	var result []Candidate
	for i := range list.Items {
		candidate, err := candidateOf(ctx, fleet, &list.Items[i])
		if err != nil {
			return nil, err
		}
		if candidate != nil {
			result = append(result, *candidate)
		}
	}
	return result, nil
}

func candidateOf(ctx context.Context, fleet client.Client,
	request *certificatesv1.CertificateSigningRequest) (*Candidate, error) {
	name := request.Labels[clusterv1alpha1.MemberLabel]
	accepted := isApproved(request)
	if !isPending(request) && !accepted || request.Spec.Username != InvitedUser(name) {
		return nil, nil
	}
	cluster := &clusterv1alpha1.Cluster{}
	if err := fleet.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	fingerprint, err := Fingerprint(request, cluster)
	if err != nil {
		// Somebody else's; the fleet's API keeps it for a day.
		return nil, nil //nolint:nilerr
	}
	return &Candidate{
		Member: name, ID: request.Annotations[IDAnnotation], Version: request.Annotations[VersionAnnotation],
		Fingerprint: fingerprint, Since: request.CreationTimestamp.Time, Accepted: accepted, request: request,
	}, nil
}

// Choose the candidate of a member. Of several, the fingerprint of the key, or its first eight digits at least,
// chooses. Who names a key gets the agent that was accepted with it before, too: an acceptance that broke off may be
// repeated.
func Choose(waiting, accepted []Candidate, member, key string) (*Candidate, error) {
	if key != "" && len(key) < 8 {
		return nil, fmt.Errorf("--key %s: give at least the first 8 digits of the fingerprint", key)
	}
	chosen, before := matching(waiting, member, key), matching(accepted, member, key)
	switch {
	case len(chosen) == 1:
		return &chosen[0], nil
	case len(chosen) > 1:
		return nil, fmt.Errorf("%d agents wait as %q: choose one with --key, by the fingerprint that its log shows",
			len(chosen), member)
	case len(before) > 0 && key != "":
		return &before[0], nil
	case len(before) > 0:
		return nil, fmt.Errorf("no agent of %q waits: the one with key %s was accepted; `trellisctl members` shows "+
			"whether it serves the member", member, before[0].Fingerprint)
	case key != "":
		return nil, fmt.Errorf("no agent of %q waits with a key %s; `trellisctl accept` lists those that do", member,
			key)
	}
	return nil, fmt.Errorf("no agent of %q waits; `trellisctl register %s` invites one, and `trellisctl accept` "+
		"lists those that wait", member, member)
}

func matching(candidates []Candidate, member, key string) []Candidate {
	var result []Candidate
	for _, c := range candidates {
		if c.Member == member && strings.HasPrefix(c.Fingerprint, strings.ToLower(key)) {
			result = append(result, c)
		}
	}
	return result
}

// Accept lets a candidate be the agent of its member. What was begun is finished when it is accepted again.
func Accept(ctx context.Context, fleet client.Client, chosen *Candidate) error {
	if chosen.Accepted {
		// That comes last.
		return nil
	}
	if chosen.ID == "" {
		return fmt.Errorf("the agent of %q does not say which cluster it runs for (annotation %s)", chosen.Member,
			IDAnnotation)
	}
	var cluster *clusterv1alpha1.Cluster
	// The fleet writes the Cluster, too.
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
		cluster, err = identify(ctx, fleet, chosen)
		return err
	}); err != nil {
		return err
	}
	if err := grantAgent(ctx, fleet, cluster); err != nil {
		return err
	}
	err := Approve(ctx, fleet, chosen.request, "Accepted", "Accepted as the agent of member "+chosen.Member)
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w; somebody else decided about it at the same time", err)
	}
	return err
}

// identify notes in the member which cluster its agent runs for, if both may still be what the other one takes them
// for.
func identify(ctx context.Context, fleet client.Client, chosen *Candidate) (*clusterv1alpha1.Cluster, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := fleet.Get(ctx, client.ObjectKey{Name: chosen.Member}, cluster); err != nil {
		return nil, fmt.Errorf("member %s: %w", chosen.Member, err)
	}
	var list clusterv1alpha1.ClusterList
	if err := fleet.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the members of the fleet: %w", err)
	}
	if other := Duplicate(chosen.Member, chosen.ID, list.Items); other != nil {
		return nil, fmt.Errorf("the agent runs for a cluster that is a member already, as %q; to give it another "+
			"name, let it leave first: `trellisctl unjoin %s`", other.Name, other.Name)
	}
	switch {
	case cluster.Spec.SyncMode != clusterv1alpha1.Pull || cluster.DeletionTimestamp != nil:
		return nil, fmt.Errorf("member %q takes no agent: it is leaving, or the fleet talks to it (spec.syncMode)",
			chosen.Member)
	case cluster.Spec.ID != "" && cluster.Spec.ID != chosen.ID:
		return nil, fmt.Errorf("member %q is cluster %s, and the agent runs for %s; let the old one leave first: "+
			"`trellisctl unjoin %s`", chosen.Member, cluster.Spec.ID, chosen.ID, chosen.Member)
	}
	before := cluster.DeepCopy()
	cluster.Spec.ID = chosen.ID
	if err := fleet.Patch(ctx, cluster,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return nil, fmt.Errorf("spec.id of member %s: %w", cluster.Name, err)
	}
	return cluster, nil
}
