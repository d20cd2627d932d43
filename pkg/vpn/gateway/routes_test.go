package gateway

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	vpnv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/vpn/v1alpha1"
)

func tlsRoute(namespace string, age time.Duration, port int32, hosts ...gatewayv1.Hostname) *gatewayv1.TLSRoute {
	route := &gatewayv1.TLSRoute{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "kube-apiserver",
		CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0).Add(-age)),
	}}
	route.Spec.Hostnames = hosts
	ref := gatewayv1.BackendRef{
		BackendObjectReference: gatewayv1.BackendObjectReference{Name: "kube-apiserver", Port: &port},
	}
	route.Spec.Rules = []gatewayv1.TLSRouteRule{{BackendRefs: []gatewayv1.BackendRef{ref}}}
	return route
}

func service(namespace, name, clusterIP string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{ClusterIP: clusterIP},
	}
}

func servicesByKey(services ...*corev1.Service) func(types.NamespacedName) *corev1.Service {
	return func(key types.NamespacedName) *corev1.Service {
		for _, s := range services {
			if s.Namespace == key.Namespace && s.Name == key.Name {
				return s
			}
		}
		return nil
	}
}

// routesOf builds all routes, whose namespaces were given all of their hosts.
func routesOf(routes []*gatewayv1.TLSRoute, services ...*corev1.Service) Routes {
	var namespaces []*corev1.Namespace
	for _, route := range routes {
		var hosts []string
		for _, host := range route.Spec.Hostnames {
			hosts = append(hosts, strings.ToLower(string(host)))
		}
		namespaces = append(namespaces,
			namespace(route.Namespace, map[string]string{vpnv1alpha1.AnnotationHosts: strings.Join(hosts, ",")}))
	}
	built, _ := BuildRoutes(routes, BuildGrants("garden", namespaces), servicesByKey(services...))
	built.complete = true
	return built
}

func namespace(name string, annotations map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
}

func TestLookup(t *testing.T) {
	routes := routesOf([]*gatewayv1.TLSRoute{
		tlsRoute("young", 0, 443, "api.example.org", "new.example.org"),
		tlsRoute("old", time.Hour, 443, "API.example.org"),
		tlsRoute("wild", 0, 443, "*.example.org"),
		tlsRoute("deep", 0, 443, "*.demo.example.org"),
	},
		service("young", "kube-apiserver", "10.2.0.1"), service("old", "kube-apiserver", "10.2.0.2"),
		service("wild", "kube-apiserver", "10.2.0.3"), service("deep", "kube-apiserver", "10.2.0.4"),
	)
	cases := map[string]string{
		"api.example.org":      "10.2.0.2:443",
		"new.example.org":      "10.2.0.1:443",
		"other.example.org":    "10.2.0.3:443",
		"a.b.example.org":      "10.2.0.3:443",
		"x.demo.example.org":   "10.2.0.4:443",
		"x.y.demo.example.org": "10.2.0.4:443",
		"demo.example.org":     "10.2.0.3:443",
		"example.org":          "",
		"org":                  "",
		"":                     "",
		".example.org":         "",
		"api.example.com":      "",
	}
	for host, want := range cases {
		backend, ok := routes.Lookup(host)
		if ok != (want != "") || ok && backend.Address.String() != want {
			t.Errorf("Lookup(%q) = %v, %v; want %q", host, backend, ok, want)
		}
	}
}

func TestBackendsThatCannotBeUsed(t *testing.T) {
	headless := service("demo", "kube-apiserver", "None")
	fine := service("demo", "kube-apiserver", "10.2.0.1")
	other, kind := gatewayv1.Namespace("other"), gatewayv1.Kind("ConfigMap")
	cases := map[string]struct {
		change  func(*gatewayv1.TLSRoute)
		service *corev1.Service
		reason  string
	}{
		"no service":       {nil, service("demo", "other", "10.2.0.1"), "Service demo/kube-apiserver does not exist"},
		"headless service": {nil, headless, "has no cluster IP"},
		"no rules":         {func(r *gatewayv1.TLSRoute) { r.Spec.Rules = nil }, fine, "not exactly one backend"},
		"no port": {
			func(r *gatewayv1.TLSRoute) { r.Spec.Rules[0].BackendRefs[0].Port = nil }, fine, "has no port",
		},
		"another namespace": {
			func(r *gatewayv1.TLSRoute) { r.Spec.Rules[0].BackendRefs[0].Namespace = &other }, fine,
			"another namespace",
		},
		"another kind": {
			func(r *gatewayv1.TLSRoute) { r.Spec.Rules[0].BackendRefs[0].Kind = &kind }, fine, "not a Service",
		},
	}
	for name, c := range cases {
		route := tlsRoute("demo", 0, 443, "api.example.org")
		if c.change != nil {
			c.change(route)
		}
		backend, ok := routesOf([]*gatewayv1.TLSRoute{route}, c.service).Lookup("api.example.org")
		if !ok || backend.Address.IsValid() || !strings.Contains(backend.Reason, c.reason) {
			t.Errorf("%s: got %+v, %v; want reason %q", name, backend, ok, c.reason)
		}
	}
}

func tunnelService(namespace, publicKey, clusterIP string) *corev1.Service {
	s := service(namespace, "vpn-seed-server", clusterIP)
	s.Labels = map[string]string{vpnv1alpha1.LabelTunnel: "true"}
	s.Annotations = map[string]string{vpnv1alpha1.AnnotationPublicKey: publicKey}
	return s
}

const publicKey = "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

func TestBuildServers(t *testing.T) {
	unlabelled := tunnelService("shoot--d", publicKey, "10.2.0.4")
	unlabelled.Labels = nil
	servers, failed := BuildServers([]*corev1.Service{
		tunnelService("shoot--b", "not a key", "10.2.0.2"),
		tunnelService("shoot--c", publicKey, "None"),
		tunnelService("shoot--a", publicKey, "10.2.0.1"),
		unlabelled,
	}, BuildGrants("garden", nil))
	if len(servers) != 1 || servers[0].Name != "shoot--a/vpn-seed-server" || servers[0].PublicKey[0] != 1 ||
		servers[0].Backend != netip.MustParseAddrPort("10.2.0.1:51820") {
		t.Errorf("servers: %+v", servers)
	}
	var names []string
	for _, name := range []string{"shoot--b/vpn-seed-server", "shoot--c/vpn-seed-server"} {
		if failed[name] != nil {
			names = append(names, name)
		}
	}
	if diff := cmp.Diff([]string{"shoot--b/vpn-seed-server", "shoot--c/vpn-seed-server"}, names); diff != "" ||
		len(failed) != 2 {
		t.Errorf("failed: %v", failed)
	}
}
