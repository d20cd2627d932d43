package registration

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/test/certrequest"
)

// An agent asks with its certificate for another one of its own. The name of somebody else in the request is refused
// whoever asks.
func TestRenewals(t *testing.T) {
	member := pullMember("edge")
	askedBy := func(user string, change ...func(*x509.CertificateRequest)) *certificatesv1.CertificateSigningRequest {
		r := requestOf(t, member, change...)
		r.Spec.Username, r.Spec.Groups = user, []string{AgentGroup, "system:authenticated"}
		return r
	}
	own := AgentUser(member)
	other := pullMember("edge2")
	outside := askedBy(own)
	outside.Spec.Groups = []string{"system:authenticated"}
	relabelled := askedBy(own)
	relabelled.Labels[clusterv1alpha1.MemberLabel] = "edge2"
	for name, tc := range map[string]struct {
		request *certificatesv1.CertificateSigningRequest
		err     string
	}{
		"its own":             {askedBy(own), ""},
		"by an invitation":    {askedBy(InvitedUser("edge")), "is no agent"},
		"by an administrator": {askedBy("admin"), "is no agent"},
		"by nobody":           {askedBy(clusterv1alpha1.AgentUserPrefix), "is no agent"},
		"without a UID":       {askedBy(clusterv1alpha1.AgentUserPrefix + "edge"), "is no agent"},
		"out of the group":    {outside, "is no agent"},
		"by another agent":    {askedBy(AgentUser(other)), "not for the agent"},
		"by an earlier agent": {askedBy(clusterv1alpha1.AgentUserPrefix + "edge:other"), "not for the agent"},
		"for another agent": {
			askedBy(own, func(r *x509.CertificateRequest) { r.Subject.CommonName = AgentUser(other) }),
			"not for the agent",
		},
		"with another's label": {relabelled, "not for the agent"},
		"for a controller": {
			askedBy(own, func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:kube-controller-manager" }),
			"not for the agent",
		},
		"for an administrator": {
			askedBy(own, func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:masters"} }),
			"not for the agent",
		},
		"without an asker": {requestOf(t, member), "is no agent"},
		"what is not a request": {
			withSpec(askedBy(own), func(s *certificatesv1.CertificateSigningRequestSpec) { s.Request = nil }),
			"not one certificate request",
		},
	} {
		got, err := ParseAgentRenewal(tc.request)
		if (tc.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: got %v, want %q", name, err, tc.err)
		}
		if want := (AgentRenewal{Member: "edge", UID: string(member.UID), ID: "id"}); err == nil && got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestRenewalsOfMembers(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*clusterv1alpha1.Cluster, *AgentRenewal)
		refusal string
	}{
		"that are there": {func(*clusterv1alpha1.Cluster, *AgentRenewal) {}, ""},
		"that were registered again": {
			func(c *clusterv1alpha1.Cluster, _ *AgentRenewal) { c.UID = "other" }, "earlier member",
		},
		"that leave": {
			func(c *clusterv1alpha1.Cluster, _ *AgentRenewal) { c.DeletionTimestamp = new(metav1.Now()) }, "leaves",
		},
		"without agents": {
			func(c *clusterv1alpha1.Cluster, _ *AgentRenewal) { c.Spec.SyncMode = clusterv1alpha1.Push }, "no agent",
		},
		"for another cluster": {
			func(_ *clusterv1alpha1.Cluster, r *AgentRenewal) { r.ID = "other" }, "another cluster",
		},
		"that nobody accepted": {
			func(c *clusterv1alpha1.Cluster, r *AgentRenewal) { c.Spec.ID, r.ID = "", "" }, "another cluster",
		},
	} {
		member := pullMember("edge")
		renewal := AgentRenewal{Member: member.Name, UID: string(member.UID), ID: "id"}
		tc.change(member, &renewal)
		if got := renewal.Refusal(member); (got == "") != (tc.refusal == "") || !strings.Contains(got, tc.refusal) {
			t.Errorf("members %s: got %q, want %q", name, got, tc.refusal)
		}
	}
}

// FuzzAgentRenewal tries requests as bytes, and as fields of which a request is made: whatever is accepted is for the
// agent that asks.
func FuzzAgentRenewal(f *testing.F) {
	own := AgentUser(pullMember("edge"))
	f.Add(own, AgentGroup, "edge", "client auth", int32(3600), []byte(nil), own, AgentGroup, "", "")
	f.Add(own, AgentGroup, "edge", "server auth", int32(-1), []byte(nil), "system:kube-controller-manager",
		AgentGroup+" system:masters", "x", "a")
	f.Add("admin", "", "", "", int32(1<<30),
		[]byte("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"), "", "", "", "")
	f.Fuzz(func(t *testing.T, username, group, label, usage string, lifetime int32, raw []byte,
		commonName, organizations, unit, dnsNames string) {
		if len(raw) == 0 {
			template := &x509.CertificateRequest{
				Subject:  pkix.Name{CommonName: commonName, Organization: strings.Fields(organizations)},
				DNSNames: strings.Fields(dnsNames),
			}
			if unit != "" {
				template.Subject.OrganizationalUnit = []string{unit}
			}
			if raw = certrequest.TryEncode(template); raw == nil {
				return
			}
		}
		got, err := ParseAgentRenewal(&certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{clusterv1alpha1.MemberLabel: label}},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Username: username, Groups: []string{group}, Request: raw,
				SignerName: certificatesv1.KubeAPIServerClientSignerName,
				Usages: []certificatesv1.KeyUsage{
					certificatesv1.UsageDigitalSignature, certificatesv1.KeyUsage(usage),
				},
				ExpirationSeconds: &lifetime,
			},
		})
		if err != nil {
			return
		}
		if username != clusterv1alpha1.AgentUserPrefix+got.Member+":"+got.UID || got.UID == "" || got.Member != label ||
			group != AgentGroup {
			t.Fatalf("%+v of user %q of %q, labelled %q", got, username, group, label)
		}
		if usage != string(certificatesv1.UsageClientAuth) || lifetime <= 0 ||
			lifetime > int32(MaxCertificateLifetime.Seconds()) {
			t.Fatalf("for usage %q and %d seconds", usage, lifetime)
		}
		isForAgent(t, raw, username)
	})
}
