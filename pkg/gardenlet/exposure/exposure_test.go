package exposure

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
)

func configuration(handlers ...config.ExposureClassHandler) *config.Configuration {
	return &config.Configuration{
		SeedConfig:            &config.SeedConfig{ObjectMeta: metav1.ObjectMeta{Name: "local"}},
		Gateway:               config.Gateway{Address: "10.0.0.1", TLSPort: 443, ProxyPort: 8443, WireGuardPort: 51821},
		ExposureClassHandlers: handlers,
	}
}

// made is a handler whose Service gardenlet makes.
func made(name string) config.ExposureClassHandler {
	service := config.LoadBalancerService{Annotations: map[string]string{"example.com/scheme": name}}
	return config.ExposureClassHandler{Name: name, LoadBalancerService: service}
}

func apply(t *testing.T, seed client.Client, used sets.Set[string], handlers ...config.ExposureClassHandler) {
	t.Helper()
	if err := Apply(t.Context(), seed, configuration(handlers...), used); err != nil {
		t.Fatal(err)
	}
}

// services are those in the seed, by name.
func services(t *testing.T, seed client.Client) map[string]corev1.Service {
	t.Helper()
	list := &corev1.ServiceList{}
	if err := seed.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	found := map[string]corev1.Service{}
	for _, service := range list.Items {
		found[service.Name] = service
	}
	return found
}

func TestHandlersHaveServices(t *testing.T) {
	seed := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	gateway := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gateway"}}
	if err := seed.Create(t.Context(), gateway); err != nil {
		t.Fatal(err)
	}
	apply(t, seed, nil, made("internet"), made("intranet"),
		config.ExposureClassHandler{Name: "own", Address: "192.0.2.1"})
	found := services(t, seed)
	if len(found) != 3 {
		t.Fatalf("Services are %v", found)
	}
	got := found["gateway-internet"]
	if got.Annotations["example.com/scheme"] != "internet" || got.Spec.Selector["app"] != "gateway" ||
		got.Spec.Type != corev1.ServiceTypeLoadBalancer {
		t.Errorf("got %+v", got)
	}
	ports := map[string]int32{}
	for _, port := range got.Spec.Ports {
		ports[port.TargetPort.StrVal] = port.Port
	}
	if !maps.Equal(ports, map[string]int32{"tls": 443, "proxy": 8443, "wireguard": 51821}) {
		t.Errorf("ports are %v", ports)
	}

	apply(t, seed, sets.New("internet"))
	if found := services(t, seed); len(found) != 2 || found["gateway-internet"].Name == "" {
		t.Errorf("the Service that is used stays, the other one goes: %v", found)
	}
	if err := Remove(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	if found := services(t, seed); len(found) != 1 || found["gateway"].Name == "" {
		t.Errorf("the gateway's own Service alone stays: %v", found)
	}
}

func TestGateway(t *testing.T) {
	service := func(name string, ingress ...corev1.LoadBalancerIngress) client.Object {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gateway-" + name}}
		s.Status.LoadBalancer.Ingress = ingress
		return s
	}
	seed := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(
		service("internet", corev1.LoadBalancerIngress{IP: "203.0.113.7"}),
		service("named", corev1.LoadBalancerIngress{Hostname: "lb.example"}), service("pending"),
	).Build()
	own := config.ExposureClassHandler{Name: "own", Address: "192.0.2.1"}
	c := configuration(made("internet"), made("named"), made("pending"), made("missing"), own)
	addresses := map[string]string{"internet": "203.0.113.7", "named": "lb.example", "own": "192.0.2.1"}
	for handler, want := range addresses {
		got, err := Gateway(t.Context(), seed, c, handler)
		if err != nil || got.Address != want || got.WireGuardPort != 51821 {
			t.Errorf("%s: got %+v, %v", handler, got, err)
		}
	}
	reasons := map[string]string{"pending": "no address", "missing": "not found", "other": `none named "other"`}
	for handler, want := range reasons {
		if _, err := Gateway(t.Context(), seed, c, handler); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", handler, err, want)
		}
	}
}
