package registration

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/test/certrequest"
)

func pullMember(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "8c5c0a38-0000-0000-0000-000000000000"},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull, ID: "id"},
	}
}

func requestOf(t testing.TB, member *clusterv1alpha1.Cluster,
	change ...func(*x509.CertificateRequest)) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	signing, err := Request{
		Member: member.Name, UID: string(member.UID), ID: "id", Version: "v1", Lifetime: time.Hour,
	}.SigningRequest(key)
	if err != nil {
		t.Fatal(err)
	}
	if len(change) == 0 {
		return signing
	}
	template := &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: AgentUser(member), Organization: []string{AgentGroup}},
	}
	for _, f := range change {
		f(template)
	}
	signing.Spec.Request = certrequest.Encode(t, template)
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
		"an agent's":          {requestOf(t, member), member, ""},
		"another member's":    {requestOf(t, member), pullMember("edge2"), "not for the agent"},
		"an earlier member's": {requestOf(t, member), again, "not for the agent"},
		"an administrator's": {
			requestOf(t, member, func(r *x509.CertificateRequest) {
				r.Subject.Organization = []string{"system:masters"}
			}), member, "not for the agent",
		},
		"in a second group": {
			requestOf(t, member, func(r *x509.CertificateRequest) {
				r.Subject.Organization = []string{AgentGroup, "x"}
			}), member, "not for the agent",
		},
		"for another user": {
			requestOf(t, member, func(r *x509.CertificateRequest) { r.Subject.CommonName = "admin" }), member,
			"not for the agent",
		},
		"with another attribute": {
			requestOf(t, member, func(r *x509.CertificateRequest) { r.Subject.OrganizationalUnit = []string{"x"} }),
			member, "not for the agent",
		},
		"for two users": {requestOf(t, member, alsoAs("admin")), member, "not for the agent"},
		"with an extension": {
			requestOf(t, member, func(r *x509.CertificateRequest) {
				r.ExtraExtensions = []pkix.Extension{{Id: []int{2, 5, 29, 19}}}
			}), member, "extensions",
		},
		"of any length": {
			withSpec(requestOf(t, member),
				func(s *certificatesv1.CertificateSigningRequestSpec) { s.ExpirationSeconds = nil }), member,
			"lifetime",
		},
		"for years": {
			withSpec(requestOf(t, member),
				func(s *certificatesv1.CertificateSigningRequestSpec) { s.ExpirationSeconds = new(int32(1 << 30)) }),
			member, "720h0m0s is the longest",
		},
		"for a time in the past": {
			withSpec(requestOf(t, member),
				func(s *certificatesv1.CertificateSigningRequestSpec) { s.ExpirationSeconds = new(int32(-1)) }), member,
			"lifetime",
		},
		"too large": {
			withSpec(requestOf(t, member),
				func(s *certificatesv1.CertificateSigningRequestSpec) { s.Request = make([]byte, maxRequestBytes+1) }),
			member, "more than 16384",
		},
		"for a server": {
			requestOf(t, member, func(r *x509.CertificateRequest) { r.DNSNames = []string{"kubernetes"} }), member,
			"other names",
		},
		"for a workload": {
			requestOf(t, member, func(r *x509.CertificateRequest) {
				r.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}}
			}), member, "other names",
		},
		"by another signer": {
			withSpec(requestOf(t, member),
				func(s *certificatesv1.CertificateSigningRequestSpec) {
					s.SignerName = "kubernetes.io/kubelet-serving"
				}), member, "signer",
		},
		"for other usages": {
			withSpec(requestOf(t, member),
				func(s *certificatesv1.CertificateSigningRequestSpec) { s.Usages = append(s.Usages, "server auth") }),
			member, "usages",
		},
		"with something behind": {
			withSpec(requestOf(t, member),
				func(s *certificatesv1.CertificateSigningRequestSpec) { s.Request = append(s.Request, "x"...) }),
			member, "not one certificate request",
		},
		"nothing": {
			withSpec(requestOf(t, member), func(s *certificatesv1.CertificateSigningRequestSpec) { s.Request = nil }),
			member, "not one certificate request",
		},
		"whose signature is bad": {withSpec(requestOf(t, member), spoil), member, "request agent-edge"},
	} {
		_, err := Fingerprint(tc.request, tc.member)
		if (tc.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: got %v, want %q", name, err, tc.err)
		}
	}
}

// alsoAs adds a common name before the one that is there, which is what a reader sees who takes the last.
func alsoAs(user string) func(*x509.CertificateRequest) {
	return func(r *x509.CertificateRequest) {
		r.Subject.ExtraNames = []pkix.AttributeTypeAndValue{
			{Type: []int{2, 5, 4, 3}, Value: user}, {Type: []int{2, 5, 4, 3}, Value: r.Subject.CommonName},
			{Type: []int{2, 5, 4, 10}, Value: AgentGroup},
		}
	}
}

func withSpec(r *certificatesv1.CertificateSigningRequest,
	change func(*certificatesv1.CertificateSigningRequestSpec)) *certificatesv1.CertificateSigningRequest {
	change(&r.Spec)
	return r
}

// spoil changes the last byte of the signature.
func spoil(s *certificatesv1.CertificateSigningRequestSpec) {
	block, _ := pem.Decode(s.Request)
	block.Bytes[len(block.Bytes)-1] ^= 1
	s.Request = pem.EncodeToMemory(block)
}

// FuzzFingerprint: whatever has one is for the agent of that member, and says nothing else.
func FuzzFingerprint(f *testing.F) {
	member := pullMember("edge")
	template := requestOf(f, member)
	f.Add(template.Spec.Request)
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, request []byte) {
		signing := template.DeepCopy()
		signing.Spec.Request = request
		fingerprint, err := Fingerprint(signing, member)
		if err != nil {
			return
		}
		if len(fingerprint) != 64 {
			t.Errorf("fingerprint %q", fingerprint)
		}
		isForAgent(t, request, AgentUser(member))
	})
}

// isForAgent reads a request as signers do.
func isForAgent(t *testing.T, request []byte, user string) {
	t.Helper()
	block, _ := pem.Decode(request)
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Subject.CommonName != user || !slices.Equal(parsed.Subject.Organization, []string{AgentGroup}) ||
		len(parsed.Subject.Names) != 2 || len(parsed.Extensions) > 0 || parsed.CheckSignature() != nil {
		t.Fatalf("accepted for %s, with extensions %v", parsed.Subject, parsed.Extensions)
	}
}

func TestChoose(t *testing.T) {
	waiting := []Candidate{
		{Member: "a", Fingerprint: "00112233445566"}, {Member: "b", Fingerprint: "aabbccddeeff"},
		{Member: "b", Fingerprint: "aabbccdd0000"},
	}
	accepted := []Candidate{
		{Member: "a", Fingerprint: "9900112233", Accepted: true},
		{Member: "d", Fingerprint: "dd00112233", Accepted: true},
	}
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
		if (tc.err == "") != (err == nil) ||
			err != nil && !strings.Contains(strings.ReplaceAll(err.Error(), `"`, ""), tc.err) ||
			err == nil && got.Fingerprint != tc.want {
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
		"none": {
			Allowance{Namespaces: []string{"a"}}, object("v1", "Namespace", ""), "without a namespace",
		},
		"a kind":      {Allowance{Kinds: []string{"Deployment.apps"}}, object("apps/v1", "Deployment", "b"), ""},
		"a core kind": {Allowance{Kinds: []string{"ConfigMap"}}, object("v1", "ConfigMap", "b"), ""},
		"another group": {
			Allowance{Kinds: []string{"Deployment.apps"}}, object("other/v1", "Deployment", "b"), "Deployment.other",
		},
	} {
		err := tc.allowance.Check(tc.object)
		if (tc.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: got %v, want %q", name, err, tc.err)
		}
	}
	for name, wrong := range map[string]Allowance{
		"a namespace": {Namespaces: []string{"A"}}, "a resource": {Kinds: []string{"deployments.apps"}},
		"a version": {Kinds: []string{"apps/v1/Deployment"}}, "nothing": {Kinds: []string{""}},
	} {
		if wrong.Validate() == nil {
			t.Errorf("%s: is not refused", name)
		}
	}
	if err := (Allowance{
		Namespaces: []string{"a"}, Kinds: []string{"ConfigMap", "Deployment.apps"},
	}).Validate(); err != nil {
		t.Error(err)
	}
}

// The manifest is what the owner of a member accepts: it says what the agent may do.
func TestManifest(t *testing.T) {
	bounds := Allowance{Namespaces: []string{"shop"}, Kinds: []string{"ConfigMap"}}
	const impersonator, both = "name: trellis-fleet-1a2b3c4d-agent-impersonator\n", "  - impersonate\n"
	for name, tc := range map[string]struct {
		options  AgentOptions
		has, not []string
	}{
		"everything": {
			AgentOptions{ServeAPI: true},
			[]string{
				"kind: ClusterRoleBinding", "- agent\n", impersonator, both, "impersonate-on:user-info:get",
				"name: trellis-fleet-1a2b3c4d:system:masters\n",
			},
			[]string{"-write", "--allow", "status:", "creationTimestamp", "kind: Role\n"},
		},
		"everything but the API": {AgentOptions{}, []string{"kind: ClusterRoleBinding"}, []string{"impersonat"}},
		"of a version": {
			AgentOptions{ServeAPI: true, Kubernetes: "v1.36.2"}, []string{"impersonate-on:user-info:get"}, []string{both},
		},
		"of an older one": {
			AgentOptions{ServeAPI: true, Kubernetes: "v1.35.1+k3s1"}, []string{both}, []string{"user-info"},
		},
		"a namespace": {
			AgentOptions{Allowance: bounds},
			[]string{
				"namespace: shop", "--allow-namespaces=shop", "--allow-kinds=ConfigMap",
				"trellis-fleet-1a2b3c4d-agent-write", "kind: Role\n",
			},
			[]string{"status:", "system:masters", "serviceaccounts/token", "impersonate", "name: impersonator"},
		},
		"a kind": {
			AgentOptions{Allowance: Allowance{Kinds: bounds.Kinds}}, []string{"--allow-kinds=ConfigMap"},
			[]string{"impersonat"},
		},
		"a namespace, and the API": {
			AgentOptions{Allowance: bounds, ServeAPI: true}, []string{impersonator, "serviceaccounts/token"},
			[]string{"system:masters"},
		},
	} {
		text, err := YAML(clientgoscheme.Scheme, edge().Manifest(tc.options))
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
	if err := (AgentOptions{Kubernetes: "newest"}).Validate(); err == nil ||
		!strings.Contains(err.Error(), "--kubernetes-version") {
		t.Errorf("got %v", err)
	}
}

func edge() *Invitation {
	return &Invitation{Member: "edge", UID: "u", Access: "trellis-fleet-1a2b3c4d-agent", Kubeconfig: []byte("k")}
}

// Who takes over an agent with bounds is nobody else in the member by what the manifest says: there is no account that
// may impersonate, and no way to another account in the agent's namespace.
func TestAttackAgentBeyondItsBounds(t *testing.T) {
	invitation := edge()
	for _, object := range invitation.Manifest(AgentOptions{Allowance: Allowance{Namespaces: []string{"shop"}}}) {
		var rules []rbacv1.PolicyRule
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			rules = o.Rules
		case *rbacv1.Role:
			rules = o.Rules
		case *rbacv1.RoleBinding:
			if o.Namespace == invitation.Access && o.RoleRef.Kind != "Role" {
				t.Errorf("%s is bound in the agent's namespace", o.RoleRef.Name)
			}
			continue
		case *rbacv1.ClusterRoleBinding:
			if o.RoleRef.Name != invitation.Access {
				t.Errorf("%s is bound in the whole member", o.RoleRef.Name)
			}
			continue
		}
		for _, rule := range rules {
			if object.GetName() != invitation.Access || len(rule.ResourceNames) > 0 {
				continue
			}
			for _, verb := range rule.Verbs {
				reads := verb == "list" || verb == "watch" ||
					verb == "get" && (slices.Equal(rule.Resources, []string{"namespaces"}) || len(rule.NonResourceURLs) > 0)
				if !reads {
					t.Errorf("%T %s may %s %v", object, object.GetName(), verb, rule.Resources)
				}
			}
		}
	}
}

// Agents write no ConfigMap, in which the fleet keeps what moved and why.
func TestAgentsWriteNoConfigMaps(t *testing.T) {
	rules := slices.Concat(requestRules(), agentRules("one"), workRules(), leaseRules("one"), readRules("authority"))
	for _, rule := range rules {
		for _, resource := range rule.Resources {
			if resource != "*" && resource != "configmaps" {
				continue
			}
			for _, verb := range rule.Verbs {
				if verb != "get" && verb != "list" && verb != "watch" {
					t.Errorf("agents may %s %s", verb, resource)
				}
			}
		}
	}
}
