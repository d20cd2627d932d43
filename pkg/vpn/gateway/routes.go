package gateway

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	vpnv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/vpn/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/vpn"
	"github.com/trellis-garden/trellis/pkg/vpn/transport"
)

// Routes maps host names to backends. It is immutable.
type Routes struct {
	// hosts holds exact names, and wildcards as ".example.org".
	hosts map[string]Backend
	// complete says that they were made of all TLSRoutes that there are.
	complete bool
}

// Backend is where connections for a host name go.
type Backend struct {
	// Route and Service name the objects that said so, as namespace/name.
	Route, Service string
	// Address is the Service's; invalid when the Service cannot be used, for the Reason.
	Address netip.AddrPort
	Reason  string
}

// Lookup finds the backend of a host name in lower case. Exact names win over wildcards, longer wildcards over shorter.
func (r Routes) Lookup(host string) (Backend, bool) {
	if strings.HasPrefix(host, ".") {
		return Backend{}, false // no host name, but it could hit the key of a wildcard
	}
	if backend, ok := r.hosts[host]; ok {
		return backend, true
	}
	for rest := host; ; {
		dot := strings.IndexByte(rest, '.')
		if dot < 0 {
			return Backend{}, false
		}
		if backend, ok := r.hosts[rest[dot:]]; ok {
			return backend, true
		}
		rest = rest[dot+1:]
	}
}

// Len returns the number of host names.
func (r Routes) Len() int { return len(r.hosts) }

// BuildRoutes makes routes from TLSRoutes and the Services that they name. A route has only the hosts that were given
// to its namespace, those of the operator's namespace come first. When two routes claim a host, the older one has it,
// as the Gateway API rules; then the first by name. Claims that are refused are returned as errors by the name of the
// route.
func BuildRoutes(routes []*gatewayv1.TLSRoute, grants Grants,
	service func(types.NamespacedName) *corev1.Service) (Routes, map[string]error) {
	sorted := slices.Clone(routes)
	slices.SortFunc(sorted, func(a, b *gatewayv1.TLSRoute) int {
		return cmp.Or(grants.rank(a.Namespace)-grants.rank(b.Namespace),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name))
	})
	hosts, failed := map[string]Backend{}, map[string]error{}
	for _, route := range sorted {
		backend := backendOf(route, service)
		for _, hostname := range route.Spec.Hostnames {
			name := strings.ToLower(string(hostname))
			if err := grants.Host(route.Namespace, name); err != nil {
				failed[backend.Route] = err
				continue
			}
			host := strings.TrimPrefix(name, "*")
			if _, taken := hosts[host]; !taken {
				hosts[host] = backend
			}
		}
	}
	return Routes{hosts: hosts}, failed
}

func backendOf(route *gatewayv1.TLSRoute, service func(types.NamespacedName) *corev1.Service) Backend {
	backend := Backend{Route: route.Namespace + "/" + route.Name}
	ref, err := serviceRef(route)
	if err != nil {
		backend.Reason = err.Error()
		return backend
	}
	key := types.NamespacedName{Namespace: route.Namespace, Name: string(ref.Name)}
	backend.Service = key.String()
	svc := service(key)
	if svc == nil {
		backend.Reason = fmt.Sprintf("Service %s does not exist", key)
		return backend
	}
	address, err := clusterAddress(svc, *ref.Port)
	if err != nil {
		backend.Reason = err.Error()
	}
	backend.Address = address
	return backend
}

// serviceRef returns the one backend of a route. Other namespaces would need a ReferenceGrant, which nothing in Trellis
// uses.
func serviceRef(route *gatewayv1.TLSRoute) (gatewayv1.BackendObjectReference, error) {
	var none gatewayv1.BackendObjectReference
	if len(route.Spec.Rules) != 1 || len(route.Spec.Rules[0].BackendRefs) != 1 {
		return none, fmt.Errorf("TLSRoute %s/%s has not exactly one backend", route.Namespace, route.Name)
	}
	ref := route.Spec.Rules[0].BackendRefs[0].BackendObjectReference
	switch {
	case ref.Group != nil && *ref.Group != "", ref.Kind != nil && *ref.Kind != "Service":
		return none, fmt.Errorf("the backend of TLSRoute %s/%s is not a Service", route.Namespace, route.Name)
	case ref.Namespace != nil && string(*ref.Namespace) != route.Namespace:
		return none, fmt.Errorf("the backend of TLSRoute %s/%s is in another namespace", route.Namespace, route.Name)
	case ref.Port == nil:
		return none, fmt.Errorf("the backend of TLSRoute %s/%s has no port", route.Namespace, route.Name)
	}
	return ref, nil
}

func clusterAddress(service *corev1.Service, port int32) (netip.AddrPort, error) {
	ip, err := netip.ParseAddr(service.Spec.ClusterIP)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("Service %s/%s has no cluster IP (%q)", service.Namespace, service.Name,
			service.Spec.ClusterIP)
	}
	return netip.AddrPortFrom(ip, uint16(port)), nil
}

// BuildServers makes the servers of tunnels from the Services that are labelled as such. Of two Services with one
// key, both of which may have it, the older one does. Services that cannot be used are returned as errors by name.
func BuildServers(services []*corev1.Service, grants Grants) ([]transport.Server, map[string]error) {
	sorted := slices.Clone(services)
	slices.SortFunc(sorted, func(a, b *corev1.Service) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name))
	})
	var servers []transport.Server
	failed := map[string]error{}
	users := map[[32]byte]string{}
	for _, service := range sorted {
		if service.Labels[vpnv1alpha1.LabelTunnel] != "true" {
			continue
		}
		server, err := serverOf(service, grants)
		if user, taken := users[server.PublicKey]; err == nil && taken {
			err = fmt.Errorf("its key is that of Service %s", user)
		}
		if err != nil {
			failed[service.Namespace+"/"+service.Name] = err
			continue
		}
		users[server.PublicKey] = server.Name
		servers = append(servers, server)
	}
	slices.SortFunc(servers, func(a, b transport.Server) int { return cmp.Compare(a.Name, b.Name) })
	return servers, failed
}

func serverOf(service *corev1.Service, grants Grants) (transport.Server, error) {
	server := transport.Server{Name: service.Namespace + "/" + service.Name}
	key, err := base64.StdEncoding.DecodeString(service.Annotations[vpnv1alpha1.AnnotationPublicKey])
	if err != nil || len(key) != len(server.PublicKey) {
		return server, fmt.Errorf("annotation %s is not a tunnel's public key in base64",
			vpnv1alpha1.AnnotationPublicKey)
	}
	// One key has one text here, whatever bits its last character has to spare.
	if err := grants.Key(service.Namespace, base64.StdEncoding.EncodeToString(key)); err != nil {
		return server, fmt.Errorf("annotation %s: %w", vpnv1alpha1.AnnotationPublicKey, err)
	}
	copy(server.PublicKey[:], key)
	server.Backend, err = clusterAddress(service, vpn.TunnelPort)
	return server, err
}
