package registration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net/url"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

func pullMember(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "8c5c0a38-0000-0000-0000-000000000000"},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull, ID: "id"},
	}
}

func requestOf(t testing.TB, member *clusterv1alpha1.Cluster, change ...func(*x509.CertificateRequest)) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	signing, err := Request{Member: member.Name, UID: string(member.UID), ID: "id", Version: "v1", Lifetime: time.Hour}.SigningRequest(key)
	if err != nil {
		t.Fatal(err)
	}
	if len(change) == 0 {
		return signing
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: AgentUser(member), Organization: []string{AgentGroup}}}
	for _, f := range change {
		f(template)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, other)
	if err != nil {
		t.Fatal(err)
	}
	signing.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return signing
}

// What people and the fleet approve is one thing only: the client certificate of the agent of that member.
func TestRequests(t *testing.T) {
	long := pullMember(strings.Repeat("a", 52))
	if _, err := Fingerprint(requestOf(t, long), long); err != nil {
		t.Errorf("the longest name: %v", err)
	}
	member := pullMember("edge")
	again := pullMember("edge")
	again.UID = "other"
	for name, tc := range map[string]struct {
		request *certificatesv1.CertificateSigningRequest
		member  *clusterv1alpha1.Cluster
		err     string
	}{
		"an agent's":             {requestOf(t, member), member, ""},
		"another member's":       {requestOf(t, member), pullMember("edge2"), "not for the agent"},
		"an earlier member's":    {requestOf(t, member), again, "not for the agent"},
		"an administrator's":     {requestOf(t, member, func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:masters"} }), member, "not for the agent"},
		"in a second group":      {requestOf(t, member, func(r *x509.CertificateRequest) { r.Subject.Organization = []string{AgentGroup, "x"} }), member, "not for the agent"},
		"for another user":       {requestOf(t, member, func(r *x509.CertificateRequest) { r.Subject.CommonName = "admin" }), member, "not for the agent"},
		"for a server":           {requestOf(t, member, func(r *x509.CertificateRequest) { r.DNSNames = []string{"kubernetes"} }), member, "other names"},
		"for a workload":         {requestOf(t, member, func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }), member, "other names"},
		"by another signer":      {withSpec(requestOf(t, member), func(s *certificatesv1.CertificateSigningRequestSpec) { s.SignerName = "kubernetes.io/kubelet-serving" }), member, "signer"},
		"for other usages":       {withSpec(requestOf(t, member), func(s *certificatesv1.CertificateSigningRequestSpec) { s.Usages = append(s.Usages, "server auth") }), member, "usages"},
		"with something behind":  {withSpec(requestOf(t, member), func(s *certificatesv1.CertificateSigningRequestSpec) { s.Request = append(s.Request, "x"...) }), member, "not one certificate request"},
		"nothing":                {withSpec(requestOf(t, member), func(s *certificatesv1.CertificateSigningRequestSpec) { s.Request = nil }), member, "not one certificate request"},
		"whose signature is bad": {withSpec(requestOf(t, member), spoil), member, "request agent-edge"},
	} {
		_, err := Fingerprint(tc.request, tc.member)
		if (tc.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: got %v, want %q", name, err, tc.err)
		}
	}
}

func withSpec(r *certificatesv1.CertificateSigningRequest, change func(*certificatesv1.CertificateSigningRequestSpec)) *certificatesv1.CertificateSigningRequest {
	change(&r.Spec)
	return r
}

// spoil changes the last byte of the signature.
func spoil(s *certificatesv1.CertificateSigningRequestSpec) {
	block, _ := pem.Decode(s.Request)
	block.Bytes[len(block.Bytes)-1] ^= 1
	s.Request = pem.EncodeToMemory(block)
}

func TestRenewals(t *testing.T) {
	member := pullMember("edge")
	own := func(change ...func(*certificatesv1.CertificateSigningRequest)) *certificatesv1.CertificateSigningRequest {
		r := requestOf(t, member)
		r.Spec.Username = AgentUser(member)
		for _, f := range change {
			f(r)
		}
		return r
	}
	leaving := pullMember("edge")
	leaving.DeletionTimestamp = new(metav1.Now())
	pushed := pullMember("edge")
	pushed.Spec.SyncMode = clusterv1alpha1.Push
	for name, tc := range map[string]struct {
		request *certificatesv1.CertificateSigningRequest
		member  *clusterv1alpha1.Cluster
		want    bool
	}{
		"its own":                    {own(), member, true},
		"by an invitation":           {own(func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Username = InvitedUser("edge") }), member, false},
		"by another agent":           {own(func(r *certificatesv1.CertificateSigningRequest) { r.Spec.Username = AgentUser(pullMember("edge2")) }), member, false},
		"for another cluster":        {own(func(r *certificatesv1.CertificateSigningRequest) { r.Annotations[IDAnnotation] = "other" }), member, false},
		"of a member that leaves":    {own(), leaving, false},
		"of a member without agents": {own(), pushed, false},
	} {
		if got := IsRenewal(tc.request, tc.member); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func FuzzFingerprint(f *testing.F) {
	member := pullMember("edge")
	template := requestOf(f, member)
	f.Add(template.Spec.Request)
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, request []byte) {
		signing := template.DeepCopy()
		signing.Spec.Request = request
		if fingerprint, err := Fingerprint(signing, member); err == nil && len(fingerprint) != 64 {
			t.Errorf("fingerprint %q", fingerprint)
		}
	})
}

func TestChoose(t *testing.T) {
	waiting := []Candidate{{Member: "a", Fingerprint: "00112233445566"}, {Member: "b", Fingerprint: "aabbccddeeff"}, {Member: "b", Fingerprint: "aabbccdd0000"}}
	accepted := []Candidate{{Member: "a", Fingerprint: "9900112233", Accepted: true}, {Member: "d", Fingerprint: "dd00112233", Accepted: true}}
	for name, tc := range map[string]struct{ member, key, want, err string }{
		"the only one":  {"a", "", "00112233445566", ""},
		"by its key":    {"b", "AABBCCDDEE", "aabbccddeeff", ""},
		"several":       {"b", "", "", "--key"},
		"ambiguous key": {"b", "aabbccdd", "", "--key"},
		"short key":     {"a", "0011", "", "8 digits"},
		"wrong key":     {"a", "ffffffff", "", "no agent of a waits with a key"},
		"nobody":        {"c", "", "", "trellisctl register c"},
		"once more":     {"d", "dd001122", "dd00112233", ""},
		"accepted":      {"d", "", "", "the one with key dd00112233 was accepted"},
		"another waits": {"a", "99001122", "9900112233", ""},
	} {
		got, err := Choose(waiting, accepted, tc.member, tc.key)
		if (tc.err == "") != (err == nil) || err != nil && !strings.Contains(strings.ReplaceAll(err.Error(), `"`, ""), tc.err) || err == nil && got.Fingerprint != tc.want {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

func TestAllowance(t *testing.T) {
	object := func(apiVersion, kind, namespace string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(apiVersion)
		o.SetKind(kind)
		o.SetNamespace(namespace)
		return o
	}
	for name, tc := range map[string]struct {
		allowance Allowance
		object    *unstructured.Unstructured
		err       string
	}{
		"everything":        {Allowance{}, object("v1", "Namespace", ""), ""},
		"a namespace":       {Allowance{Namespaces: []string{"a"}}, object("v1", "ConfigMap", "a"), ""},
		"another namespace": {Allowance{Namespaces: []string{"a"}}, object("v1", "ConfigMap", "b"), "namespace b"},
		"none":              {Allowance{Namespaces: []string{"a"}}, object("v1", "Namespace", ""), "without a namespace"},
		"a kind":            {Allowance{Kinds: []string{"Deployment.apps"}}, object("apps/v1", "Deployment", "b"), ""},
		"a core kind":       {Allowance{Kinds: []string{"ConfigMap"}}, object("v1", "ConfigMap", "b"), ""},
		"another group":     {Allowance{Kinds: []string{"Deployment.apps"}}, object("other/v1", "Deployment", "b"), "Deployment.other"},
	} {
		err := tc.allowance.Check(tc.object)
		if (tc.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: got %v, want %q", name, err, tc.err)
		}
	}
	for name, wrong := range map[string]Allowance{
		"a namespace": {Namespaces: []string{"A"}}, "a resource": {Kinds: []string{"deployments.apps"}}, "a version": {Kinds: []string{"apps/v1/Deployment"}}, "nothing": {Kinds: []string{""}},
	} {
		if wrong.Validate() == nil {
			t.Errorf("%s: is not refused", name)
		}
	}
	if err := (Allowance{Namespaces: []string{"a"}, Kinds: []string{"ConfigMap", "Deployment.apps"}}).Validate(); err != nil {
		t.Error(err)
	}
}

// The manifest is what the owner of a member accepts: it says what the agent may do.
func TestManifest(t *testing.T) {
	invitation := &Invitation{Member: "edge", UID: "u", Access: "trellis-fleet-1a2b3c4d-agent", Kubeconfig: []byte("k")}
	for name, tc := range map[string]struct {
		allowance Allowance
		has, not  []string
	}{
		"everything": {Allowance{}, []string{"kind: ClusterRoleBinding", "- agent\n"}, []string{"-write", "--allow", "status:", "creationTimestamp"}},
		"a namespace": {Allowance{Namespaces: []string{"shop"}, Kinds: []string{"ConfigMap"}},
			[]string{"namespace: shop", "--allow-namespaces=shop", "--allow-kinds=ConfigMap", "trellis-fleet-1a2b3c4d-agent-write"}, []string{"status:"}},
	} {
		text, err := YAML(clientgoscheme.Scheme, invitation.Manifest(AgentOptions{Image: "i", Allowance: tc.allowance}))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range tc.has {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: %s is missing in\n%s", name, want, text)
			}
		}
		for _, want := range tc.not {
			if strings.Contains(string(text), want) {
				t.Errorf("%s: %s is in\n%s", name, want, text)
			}
		}
	}
}
