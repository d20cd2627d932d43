package memberapi

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/acting"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// recorder is a member that remembers the headers of the last request.
type recorder struct{ header http.Header }

func (m *recorder) start(t *testing.T) *httptest.Server {
	t.Helper()
	member := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		m.header = r.Header.Clone()
	}))
	t.Cleanup(member.Close)
	return member
}

// ask sends a request with headers to member m1.
func ask(t *testing.T, served *httptest.Server, header http.Header) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, served.URL+prefix+"/clusters/m1/proxy/api",
		nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// An application team that may use clusters/proxy sends all that could make it somebody else, or open a metadata
// service.
func TestAttackHeadersToMembers(t *testing.T) {
	member := &recorder{}
	served := through(t, fleetWith(t, member.start(t), ""))
	attack := http.Header{
		"Accept": {"application/json"}, "Connection": {"Impersonate-User, Authorization, Impersonate-Group"},
	}
	for _, name := range []string{
		"Authorization", "Proxy-Authorization", "Cookie", "Impersonate-User", "Impersonate-Uid", "Impersonate-Group",
		"Impersonate-Extra-Scopes", "impersonate_group",
		"X-Remote-User", "X-Remote-Group", "X-Remote-Extra-A", "X-Forwarded-For", "X-Forwarded-User",
		"X-Forwarded-Access-Token", "Forwarded", "X-Real-Ip",
		"X-Auth-Request-User", "X-Webauth-User", "X-Original-Url", "X-Rewrite-Url", "X-Http-Method-Override",
		"X-Client-Cert", "Ssl-Client-Cert",
		"Metadata-Flavor", "Metadata", "X-Aws-Ec2-Metadata-Token", "X-Aws-Ec2-Metadata-Token-Ttl-Seconds",
		"X-Google-Metadata-Request", "Metadata-Token",
	} {
		attack[name] = []string{"system:masters"}
	}
	attack["Sec-WebSocket-Protocol"] = []string{"base64url.bearer.authorization.k8s.io.dG9rZW4, v4.channel.k8s.io"}
	if status, body := ask(t, served, attack); status != http.StatusOK {
		t.Fatalf("got %d, %s", status, body)
	}
	want := http.Header{
		"Accept": {"application/json"}, "Authorization": {"Bearer impersonator's"},
		"Impersonate-User":  {"trellis-fleet-1a2b3c4d:alice"},
		"Impersonate-Group": {"trellis-fleet-1a2b3c4d:developers"}, "X-Trellis-Fleet-Hops": {"1"},
		"Sec-Websocket-Protocol": {"v4.channel.k8s.io"},
	}
	for key, values := range member.header {
		if key != "User-Agent" && key != "Accept-Encoding" && !slices.Equal(trimmed(values), want[key]) {
			t.Errorf("the member got %s: %q, want %q", key, values, want[key])
		}
	}
	if len(member.header["Impersonate-User"]) != 1 {
		t.Errorf("the member got %v", member.header)
	}
}

func trimmed(values []string) []string {
	var result []string
	for _, value := range values {
		result = append(result, strings.TrimSpace(value))
	}
	return result
}

// A user of the fleet has a name that means something in the member: with the owner's word for the same names, and
// without.
func TestAttackNamesInMembers(t *testing.T) {
	mine := registration.NamePrefix("1a2b3c4d-0000")
	for name, tc := range map[string]struct {
		same bool
		want string
	}{
		"alice": {true, "alice"},
		"bob":   {false, mine + "bob"},

		"system:masters":                        {false, mine + "system:masters"},
		"system:serviceaccount:kube-system:a":   {false, mine + "system:serviceaccount:kube-system:a"},
		"System:nodes":                          {true, mine + "System:nodes"},
		"system:serviceaccounts":                {true, mine + "system:serviceaccounts"},
		"system:serviceaccount:kube-system:b":   {true, mine + "system:serviceaccount:kube-system:b"},
		"system:kube-controller-manager":        {true, mine + "system:kube-controller-manager"},
		"gardener.cloud:project:admins":         {true, mine + "gardener.cloud:project:admins"},
		"federation.trellis.garden:agents":      {true, mine + "federation.trellis.garden:agents"},
		mine + "system:masters":                 {true, mine + mine + "system:masters"},
		"trellis-fleet-99999999:system:masters": {true, mine + "trellis-fleet-99999999:system:masters"},
	} {
		if got := (acting.Names{Prefix: mine, Same: tc.same}).Of(name); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

func TestOwnersWordOnNames(t *testing.T) {
	member := &recorder{}
	fleet := fleetWith(t, member.start(t), "").(client.Client)
	secret := &corev1.Secret{}
	if err := fleet.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "m1-impersonator"}, secret); err != nil {
		t.Fatal(err)
	}
	secret.Annotations = map[string]string{registration.NamesAnnotation: registration.NamesSame}
	if err := fleet.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if _, _ = ask(t, through(t, fleet), http.Header{}); member.header.Get("Impersonate-User") != "alice" {
		t.Errorf("the member got %v", member.header)
	}
}

// A hostile member sends whom it is asked by elsewhere, where kubectl would go with the credentials for the fleet.
func TestAttackRedirectsOfMembers(t *testing.T) {
	asked := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(elsewhere.Close)
	for _, code := range []int{
		http.StatusMultipleChoices, http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect,
	} {
		member := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(code)
		}))
		t.Cleanup(member.Close)
		if status, body := ask(t, through(t, fleetWith(t, member, "")),
			http.Header{}); status != http.StatusServiceUnavailable || !strings.Contains(body, "elsewhere") {
			t.Errorf("%d: got %d, %s", code, status, body)
		}
	}
	if asked {
		t.Error("a redirection was followed")
	}
}

// Who may write Clusters makes one that leads to what speaks HTTP in the seed's network, or to the metadata of its
// cloud.
func TestAttackAddressesOfMembers(t *testing.T) {
	asked := false
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(plain.Close)
	member := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(member.Close)
	fleet := fleetWith(t, member, "").(client.Client)
	for name, change := range map[string]func(*clusterv1alpha1.ClusterSpec){
		"http": func(s *clusterv1alpha1.ClusterSpec) { s.APIEndpoint = plain.URL },
		"metadata": func(s *clusterv1alpha1.ClusterSpec) {
			s.APIEndpoint = "https://169.254.169.254"
		},
		"metadata, as IPv6": func(s *clusterv1alpha1.ClusterSpec) {
			s.APIEndpoint = "https://[::ffff:169.254.169.254]"
		},
		"metadata, translated": func(s *clusterv1alpha1.ClusterSpec) {
			s.APIEndpoint = "https://[64:ff9b::a9fe:a9fe]"
		},
		"metadata, as a proxy": func(s *clusterv1alpha1.ClusterSpec) { s.ProxyURL = "http://169.254.169.254" },
		"metadata, as a SOCKS5 proxy": func(s *clusterv1alpha1.ClusterSpec) {
			s.ProxyURL = "socks5://169.254.169.254:80"
		},
	} {
		cluster := &clusterv1alpha1.Cluster{}
		if err := fleet.Get(t.Context(), client.ObjectKey{Name: "m1"}, cluster); err != nil {
			t.Fatal(err)
		}
		kept := cluster.Spec
		change(&cluster.Spec)
		update(t, fleet, cluster)
		status, body := ask(t, through(t, fleet), http.Header{})
		if status == http.StatusOK || !strings.Contains(body, "none of a cluster") &&
			!strings.Contains(body, "must begin with https") {
			t.Errorf("%s: got %d, %s", name, status, body)
		}
		cluster.Spec = kept
		update(t, fleet, cluster)
	}
	if asked {
		t.Error("the member was asked over http")
	}
}

func update(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	if err := c.Update(context.Background(), object); err != nil {
		t.Fatal(err)
	}
}

// A member that leads back to its own fleet is asked for ever by who counts hops from far below.
func TestAttackEndlessHops(t *testing.T) {
	member := &recorder{}
	served := through(t, fleetWith(t, member.start(t), ""))
	if status, body := ask(t, served,
		http.Header{"X-Trellis-Fleet-Hops": {"-1000000"}}); status != http.StatusForbidden {
		t.Errorf("got %d, %s", status, body)
	}
}
