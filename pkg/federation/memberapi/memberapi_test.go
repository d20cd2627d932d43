package memberapi

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/acting"
	"github.com/trellis-garden/trellis/pkg/federation/outside"
)

func TestSplitProxyPath(t *testing.T) {
	tests := map[string]struct {
		path       string
		name, rest string
		ok         bool
	}{
		"a path in the member":   {"/clusters/m1/proxy/api/v1/nodes?limit=1", "m1", "/api/v1/nodes?limit=1", true},
		"its root":               {"/clusters/m1/proxy", "m1", "/", true},
		"its root, with a slash": {"/clusters/m1/proxy/", "m1", "/", true},
		"escaped parts stay":     {"/clusters/m1/proxy/a%2Fb/c", "m1", "/a%2Fb/c", true},
		"a proxy in the member": {
			"/clusters/m1/proxy/api/v1/nodes/n/proxy/x", "m1", "/api/v1/nodes/n/proxy/x", true,
		},
		"the object":                 {"/clusters/m1", "", "", false},
		"its status":                 {"/clusters/m1/status", "", "", false},
		"another subresource":        {"/clusters/m1/proxyx/api", "", "", false},
		"no name":                    {"/clusters//proxy/api", "", "", false},
		"a member called proxy":      {"/clusters/proxy", "", "", false},
		"a watch of the old form":    {"/watch/clusters/m1/proxy", "", "", false},
		"another resource":           {"/clustersx/m1/proxy", "", "", false},
		"a namespace":                {"/namespaces/n/clusters/m1/proxy", "", "", false},
		"an escaped slash is a part": {"/clusters/m1%2Fproxy/api", "m1", "/api", true},
	}
	for name, tc := range tests {
		u, err := url.Parse("https://fleet" + prefix + tc.path)
		if err != nil {
			t.Fatal(err)
		}
		got, rest, ok := splitProxyPath(u)
		if got != tc.name || ok != tc.ok || ok && rest.String() != tc.rest {
			t.Errorf("%s: got %q, %q, %v", name, got, rest.String(), ok)
		}
	}
}

func TestBodiesChangeTheirVersion(t *testing.T) {
	tests := map[string]struct{ kind, body, want string }{
		"an object": {"application/json",
			`{"apiVersion" : "cluster.karmada.io/v1alpha1","kind":"Cluster","spec":{"n":12345678901234567890}}`,
			`{"apiVersion":"cluster.karmada.io/v1","kind":"Cluster","spec":{"n":12345678901234567890}}`},
		"managed fields": {"application/json",
			`{"metadata":{"managedFields":[{"apiVersion":"cluster.karmada.io/v1alpha1"}]}}`,
			`{"metadata":{"managedFields":[{"apiVersion":"cluster.karmada.io/v1"}]}}`},
		"YAML": {
			"application/apply-patch+yaml", "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\n",
			`{"apiVersion":"cluster.karmada.io/v1","kind":"Cluster"}`,
		},
		"others stay": {
			"application/json", `{"apiVersion":"v1","kind":"DeleteOptions"}`,
			`{"apiVersion":"v1","kind":"DeleteOptions"}`,
		},
		"texts stay": {
			"application/json", `{"a":"cluster.karmada.io/v1alpha1"}`, `{"a":"cluster.karmada.io/v1alpha1"}`,
		},
		"a list of operations": {
			"application/json-patch+json", `[{"op":"remove","path":"/spec/region"}]`,
			`[{"op":"remove","path":"/spec/region"}]`,
		},
		"nothing": {"", "", ""},
		"a merge patch, UTF-8": {
			"application/merge-patch+json; charset=utf-8", `{"apiVersion":"cluster.karmada.io/v1alpha1"}`,
			`{"apiVersion":"cluster.karmada.io/v1"}`,
		},
	}
	for name, tc := range tests {
		got, err := toStored([]byte(tc.body), tc.kind)
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
	if _, err := toStored([]byte(`{"a`), "application/json"); err == nil {
		t.Error("half an object is taken")
	}
}

// An event must not wait for the next one.
func TestAnswersAreChangedLineByLine(t *testing.T) {
	in, out := io.Pipe()
	lines := bufio.NewReader(newAnswer(in))
	for _, event := range []map[string]any{
		{"type": "ADDED", "object": map[string]any{"apiVersion": stored, "kind": "Cluster"}},
		{
			"type": "BOOKMARK", "object": map[string]any{
				"apiVersion": stored, "metadata": map[string]any{
					"annotations": map[string]any{"last": `{"apiVersion":"cluster.karmada.io/v1"}`},
				},
			},
		},
	} {
		text, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = out.Write(append(text, '\n')) }()
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		want := maps.Clone(event)
		want["object"].(map[string]any)["apiVersion"] = public
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	_ = out.Close()
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("got %q, %v", rest, err)
	}
}

func TestOnlyJSONIsAskedFor(t *testing.T) {
	header := http.Header{
		"Accept": {
			"application/json;as=Table;v=v1;g=meta.k8s.io,application/vnd.kubernetes.protobuf,application/cbor",
		},
		"Accept-Encoding": {"gzip"},
	}
	acceptJSON(header)
	if got := header.Get("Accept"); got != "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" ||
		header.Get("Accept-Encoding") != "" {
		t.Errorf("got %v", header)
	}
}

func TestCallerInAMember(t *testing.T) {
	header := http.Header{"Accept": {"application/json"}}
	who := caller{
		user: "alice", uid: "7", groups: []string{"developers", authenticated},
		extra: map[string][]string{"scopes": {"some"}},
	}
	who.inMembers().In(header, "token", acting.Names{Prefix: "fleet:"})
	want := http.Header{
		"Authorization": {"Bearer token"}, "Impersonate-User": {"fleet:alice"},
		"Impersonate-Group": {"fleet:developers"}, "Accept": {"application/json"},
	}
	if !reflect.DeepEqual(header, want) {
		t.Errorf("got %v, want %v", header, want)
	}
	for _, nobody := range []caller{{user: anonymous}, {user: "x", groups: []string{unauthenticated}}} {
		if nobody.mayActInMembers() == nil {
			t.Errorf("%v may act in members", nobody)
		}
	}
}

func TestCallerInTheFleet(t *testing.T) {
	header := http.Header{"Impersonate-User": {"admin"}, "X-Remote-User": {"alice"}}
	caller{
		user: "alice", uid: "7", groups: []string{"developers", authenticated},
		extra: map[string][]string{"a%2fb": {"1", "2"}},
	}.actInFleet(header)
	want := http.Header{
		"Impersonate-User": {"alice"}, "Impersonate-Uid": {"7"}, "Impersonate-Group": {"developers", authenticated},
		"Impersonate-Extra-A%2fb": {"1", "2"},
	}
	if !reflect.DeepEqual(header, want) {
		t.Errorf("got %v, want %v", header, want)
	}
}

// Requests are handed back by what Kubernetes lets be impersonated for some requests only.
func TestCallersThatAreHandedBack(t *testing.T) {
	account := "system:serviceaccount:n:a"
	for name, tc := range map[string]struct {
		who, want caller
		refused   bool
	}{
		"a user": {
			who:  caller{user: "alice", uid: "7", groups: []string{"developers"}},
			want: caller{user: "alice", uid: "7", groups: []string{"developers"}},
		},
		"an administrator": {
			who:  caller{user: "admin", groups: []string{"system:masters", authenticated}},
			want: caller{user: "admin", groups: []string{fleetv1alpha1.MastersGroup, authenticated}},
		},
		"a service account": {
			who: caller{
				user: account, uid: "7", groups: []string{
					"system:serviceaccounts", "system:serviceaccounts:n", authenticated,
				}, extra: map[string][]string{
					"authentication.kubernetes.io%2fpod-name": {"p"},
				},
			},
			want: caller{user: account},
		},
		"a service account of another namespace's": {
			who: caller{user: account, groups: []string{"system:serviceaccounts:kube-system"}}, refused: true,
		},
		"a service account as an administrator": {
			who: caller{user: account, groups: []string{"system:masters"}}, refused: true,
		},
		"a node": {who: caller{user: "system:node:n"}, refused: true},
		"one of the nodes": {
			who: caller{user: "n", groups: []string{"system:nodes"}}, refused: true,
		},
	} {
		if got, err := tc.who.handedBack(); !reflect.DeepEqual(got, tc.want) || (err != nil) != tc.refused {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

func TestOnlyTheFrontProxyIsBelieved(t *testing.T) {
	now := time.Now()
	front, authority, err := selfSigned("front-proxy", now)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := selfSigned("front-proxy", now)
	if err != nil {
		t.Fatal(err)
	}
	published := &corev1.ConfigMap{Data: map[string]string{
		"requestheader-client-ca-file": string(authority), "requestheader-allowed-names": `["front-proxy"]`,
		"requestheader-username-headers":     `["X-Remote-User"]`,
		"requestheader-group-headers":        `["X-Remote-Group"]`,
		"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
	}}
	p, err := parseFrontProxy(published)
	if err != nil {
		t.Fatal(err)
	}
	// The certificate made here is one of a server; the one of a client is verified against a real API server.
	for name, certificates := range map[string][]tls.Certificate{
		"none": nil, "of another authority": {other}, "of a server": {front},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("X-Remote-User", "admin")
		r.TLS = &tls.ConnectionState{}
		for _, c := range certificates {
			leaf, err := x509.ParseCertificate(c.Certificate[0])
			if err != nil {
				t.Fatal(err)
			}
			r.TLS.PeerCertificates = append(r.TLS.PeerCertificates, leaf)
		}
		if who, err := p.callerOf(r); err == nil {
			t.Errorf("%s: got %v", name, who)
		}
	}
	who, err := p.read(http.Header{
		"X-Remote-User": {"alice"}, "X-Remote-Group": {"a", "b"}, "X-Remote-Extra-Scopes": {"s"},
	})
	want := caller{user: "alice", groups: []string{"a", "b"}, extra: map[string][]string{"scopes": {"s"}}}
	if err != nil || !reflect.DeepEqual(who, want) {
		t.Errorf("got %v, %v, want %v", who, err, want)
	}
	if _, err := parseFrontProxy(&corev1.ConfigMap{}); err == nil {
		t.Error("no authority is enough")
	}
}

// While the fleet does not say who its kube-apiserver is, what it said before holds, and the log tells why, once.
func TestWhatTheFleetNoLongerTellsIsLogged(t *testing.T) {
	_, authority, err := selfSigned("front-proxy", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	published := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: "extension-apiserver-authentication",
		},
		Data: map[string]string{
			"requestheader-client-ca-file": string(authority), "requestheader-allowed-names": `["front-proxy"]`,
			"requestheader-username-headers": `["X-Remote-User"]`, "requestheader-group-headers": `["X-Remote-Group"]`,
			"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
		},
	}
	var logged []string
	live := fake.NewClientBuilder().Build()
	s := &Server{
		live: live, log: funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}),
	}
	read := func(wantLogged int) {
		t.Helper()
		s.readFrontAt = time.Time{}
		if front, err := s.frontProxy(t.Context()); front == nil || err != nil {
			t.Fatalf("got %v, %v", front, err)
		}
		if len(logged) != wantLogged {
			t.Errorf("logged %q, want %d lines", logged, wantLogged)
		}
	}
	if front, err := s.frontProxy(t.Context()); front != nil || err == nil {
		t.Errorf("got %v, %v where nothing was ever read", front, err)
	}
	if err := live.Create(t.Context(), published.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	read(0)
	if err := live.Delete(t.Context(), published.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	read(1)
	if len(logged) == 1 && !strings.Contains(logged[0], "not found") {
		t.Errorf("logged %q without the reason", logged[0])
	}
	read(1)
	if err := live.Create(t.Context(), published.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	read(2)
}

// fleetWith is the reader of a fleet with member m1 at an address.
func fleetWith(t *testing.T, server *httptest.Server, path string) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}, Data: data}
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "1a2b3c4d-0000-4000-8000-000000000000"},
		},
		secret("m1", map[string][]byte{"caBundle": authority, "token": []byte("the fleet's")}),
		secret("m1-impersonator", map[string][]byte{"token": []byte("impersonator's")}),
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Push, APIEndpoint: server.URL + path,
			SecretRef:             &clusterv1alpha1.LocalSecretReference{Namespace: "n", Name: "m1"},
			ImpersonatorSecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "n", Name: "m1-impersonator"},
		}},
	).Build()
}

// through serves members as alice, without what the kube-apiserver does.
func through(t *testing.T, fleet client.Reader) *httptest.Server {
	t.Helper()
	s := &Server{fleet: fleet, live: fleet, log: logr.Discard(), members: memberProxies{dial: outside.Direct}}
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, below, ok := splitProxyPath(r.URL)
		if !ok {
			t.Errorf("no path of a member: %s", r.URL)
			return
		}
		s.toMember(w, r, caller{user: "alice", groups: []string{"developers"}}, name, below)
	}))
	t.Cleanup(served.Close)
	return served
}

// exec changes the protocol, and both sides talk afterwards.
func TestUpgradesStream(t *testing.T) {
	member := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/k8s/c1/api/v1/exec" || r.Header.Get("Upgrade") != "SPDY/3.1" ||
			r.Header.Get("Impersonate-User") != "trellis-fleet-1a2b3c4d:alice" ||
			r.Header.Get("Authorization") != "Bearer impersonator's" {
			http.Error(w, fmt.Sprint(r.URL, r.Header), http.StatusBadRequest)
			return
		}
		connection, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = connection.Close() }()
		_, _ = both.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
		_ = both.Flush()
		line, _ := both.ReadString('\n')
		_, _ = both.WriteString("heard " + line)
		_ = both.Flush()
	}))
	t.Cleanup(member.Close)
	served := through(t, fleetWith(t, member, "/k8s/c1"))
	connection, err := net.Dial("tcp", served.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	fmt.Fprintf(connection, "POST %s/clusters/m1/proxy/api/v1/exec HTTP/1.1\r\nHost: fleet\r\nConnection: "+
		"Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n", prefix)
	reader := bufio.NewReader(connection)
	response, err := http.ReadResponse(reader, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("got %v, %v", response, err)
	}
	fmt.Fprintln(connection, "hello")
	if line, err := reader.ReadString('\n'); line != "heard hello\n" {
		t.Errorf("got %q, %v", line, err)
	}
}

func TestMemberThatKnowsNoImpersonator(t *testing.T) {
	member := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(member.Close)
	served := through(t, fleetWith(t, member, ""))
	for path, want := range map[string]string{
		"/clusters/m1/proxy/api":          "does not accept the token of spec.impersonatorSecretRef",
		"/clusters/m2/proxy/api":          `\"m2\" not found`,
		"/clusters/m1/proxy/a/%2e%2e/api": `must not have`,
	} {
		response, err := http.Get(served.URL + prefix + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode == http.StatusUnauthorized || !strings.Contains(string(body), want) {
			t.Errorf("%s: got %s, %s, %v, want %s", path, response.Status, body, err, want)
		}
	}
}

// A fleet whose member is the fleet itself, by the path of that member.
func TestLoopsEnd(t *testing.T) {
	var loop http.Handler
	member := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		loop.ServeHTTP(w, r)
	}))
	t.Cleanup(member.Close)
	served := through(t, fleetWith(t, member, prefix+"/clusters/m1/proxy"))
	loop = served.Config.Handler
	response, err := http.Get(served.URL + prefix + "/clusters/m1/proxy/api")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || response.StatusCode != http.StatusForbidden ||
		!strings.Contains(string(body), "through 3 fleets") {
		t.Errorf("got %s, %s, %v", response.Status, body, err)
	}
}
