package gateway

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	vpnv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/vpn/v1alpha1"
)

const otherKey = "AgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

// seed has a garden, two shoots that were given hosts and keys, one that an older gardenlet made, and an extension.
func seed() []*corev1.Namespace {
	given := func(name, hosts, key string) *corev1.Namespace {
		return namespace(name, map[string]string{
			vpnv1alpha1.AnnotationHosts: hosts, vpnv1alpha1.AnnotationPublicKey: key,
		})
	}
	return []*corev1.Namespace{
		namespace("garden", nil), given("shoot--a", "api.a.example.org,a.internal.example.org", publicKey),
		given("shoot--hostile", "api.hostile.example.org", otherKey), namespace("shoot--old", nil),
		namespace("extension-x", nil),
		given("shoot--late", "api.a.example.org", publicKey),
	}
}

// Whoever may write TLSRoutes in a namespace, even before those of others, takes no host that the namespace was not
// given.
func TestAttackHostsOfOthers(t *testing.T) {
	honest := []*gatewayv1.TLSRoute{
		tlsRoute("garden", 0, 443, "api.garden.example.org"),
		tlsRoute("shoot--a", 0, 443, "api.a.example.org", "A.internal.example.org"),
		tlsRoute("shoot--old", 0, 443, "api.old.example.org"),
	}
	var services []*corev1.Service
	for _, n := range seed() {
		services = append(services, service(n.Name, "kube-apiserver", "10.2.0.1"))
	}
	hosts := map[string]string{ // and the namespace that must have it
		"api.a.example.org": "shoot--a", "a.internal.example.org": "shoot--a", "api.garden.example.org": "garden",
		"api.old.example.org":    "shoot--old",
		"api.future.example.org": "", "any.example.org": "",
	}
	for _, attacker := range []string{"shoot--hostile", "extension-x", "shoot--late"} {
		stolen := tlsRoute(attacker, 24*time.Hour, 443, "*.a.example.org", "*.example.org", "*")
		for host := range hosts {
			stolen.Spec.Hostnames = append(stolen.Spec.Hostnames, gatewayv1.Hostname(strings.ToUpper(host)),
				gatewayv1.Hostname(host))
		}
		routes, refused := BuildRoutes(append(honest, stolen), BuildGrants("garden", seed()),
			servicesByKey(services...))
		for host, want := range hosts {
			backend, ok := routes.Lookup(host)
			if ok != (want != "") || ok && backend.Service != want+"/kube-apiserver" {
				t.Errorf("%s took %s: it leads to %q", attacker, host, backend.Service)
			}
		}
		if refused[attacker+"/kube-apiserver"] == nil || len(refused) != 1 {
			t.Errorf("refused: %v", refused)
		}
	}
}

// A namespace of an older gardenlet may have what nobody was given: not the garden's hosts, and no wildcard.
func TestAttackHostsByNamespaceWithoutGrants(t *testing.T) {
	routes, _ := BuildRoutes([]*gatewayv1.TLSRoute{
		tlsRoute("garden", 0, 443, "api.garden.example.org"),
		tlsRoute("shoot--old", time.Hour, 443, "api.garden.example.org", "api.a.example.org", "*.example.org",
			"api.old.example.org"),
	}, BuildGrants("garden", seed()),
		servicesByKey(service("garden", "kube-apiserver", "10.2.0.1"),
			service("shoot--old", "kube-apiserver", "10.2.0.2")))
	for host, want := range map[string]string{
		"api.garden.example.org": "garden/kube-apiserver", "api.old.example.org": "shoot--old/kube-apiserver",
		"api.a.example.org": "", "x.example.org": "",
	} {
		if backend, _ := routes.Lookup(host); backend.Service != want {
			t.Errorf("%s leads to %q, want %q", host, backend.Service, want)
		}
	}
}

// A route leads to Services of its own namespace only: to others, past their routes, neither by a namespace nor by a
// name.
func TestAttackBackendsOfOthers(t *testing.T) {
	services := servicesByKey(service("shoot--a", "kube-apiserver", "10.2.0.1"),
		service("shoot--a", "etcd-main-client", "10.2.0.2"))
	foreign := gatewayv1.Namespace("shoot--a")
	for what, change := range map[string]func(*gatewayv1.BackendRef){
		"namespace": func(ref *gatewayv1.BackendRef) { ref.Namespace = &foreign },
		"name":      func(ref *gatewayv1.BackendRef) { ref.Name = "../shoot--a/etcd-main-client" },
	} {
		route := tlsRoute("shoot--hostile", time.Hour, 443, "api.hostile.example.org")
		change(&route.Spec.Rules[0].BackendRefs[0])
		routes, _ := BuildRoutes([]*gatewayv1.TLSRoute{route}, BuildGrants("garden", seed()), services)
		if backend, ok := routes.Lookup("api.hostile.example.org"); !ok || backend.Address.IsValid() ||
			backend.Reason == "" {
			t.Errorf("%s: the route leads to %+v", what, backend)
		}
	}
}

// A shoot with two tunnels has both keys, and nobody else has one of them; it has no third one.
func TestAttackWireGuardKeyOfTheSecondPath(t *testing.T) {
	const first, second, third = "AwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
		"BAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "BQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	namespaces := append(seed(), namespace("shoot--two",
		map[string]string{vpnv1alpha1.AnnotationPublicKey: first + "," + second}))
	own := tunnelService("shoot--two", second, "10.2.0.1")
	own.Name, own.CreationTimestamp = "vpn-seed-server-1", metav1.NewTime(time.Unix(1_700_000_000, 0))
	tooMany := tunnelService("shoot--two", third, "10.2.0.2")
	for _, attacker := range []string{"extension-x", "shoot--hostile", "shoot--late", "shoot--old"} {
		stolen := tunnelService(attacker, second, "10.2.0.6")
		servers, failed := BuildServers([]*corev1.Service{stolen, own, tooMany}, BuildGrants("garden", namespaces))
		if len(servers) != 1 || servers[0].Name != "shoot--two/vpn-seed-server-1" || len(failed) != 2 {
			t.Errorf("%s: servers %+v, refused %v", attacker, servers, failed)
		}
	}
}

// A Service with the WireGuard key of another shoot gets none of its packets, also if its name comes first, or it is
// older.
func TestAttackWireGuardKeyOfAnotherShoot(t *testing.T) {
	for _, attacker := range []string{"extension-x", "shoot--hostile", "shoot--late", "shoot--0"} {
		stolen := tunnelService(attacker, publicKey, "10.2.0.6")
		honest := tunnelService("shoot--a", publicKey, "10.2.0.1")
		honest.CreationTimestamp = metav1.NewTime(time.Unix(1_700_000_000, 0))
		servers, failed := BuildServers([]*corev1.Service{stolen, honest}, BuildGrants("garden", seed()))
		if len(servers) != 1 || servers[0].Name != "shoot--a/vpn-seed-server" ||
			failed[attacker+"/vpn-seed-server"] == nil {
			t.Errorf("%s: servers %+v, refused %v", attacker, servers, failed)
		}
	}
	old := tunnelService("shoot--old", "AwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "10.2.0.3")
	later := tunnelService("shoot--0", "AwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "10.2.0.4")
	later.CreationTimestamp = metav1.NewTime(time.Unix(1_700_000_000, 0))
	servers, _ := BuildServers([]*corev1.Service{later, old}, BuildGrants("garden", seed()))
	if len(servers) != 1 || servers[0].Name != "shoot--old/vpn-seed-server" {
		t.Errorf("of two Services with a key that nobody was given, the later got it: %+v", servers)
	}
}
