package loadbalancers

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func node(name, address string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: address},
			},
		},
	}
}

func balanced(present string, change ...func(*corev1.Service)) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gateway"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
	}
	if present != "" {
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: present}}
	}
	for _, c := range change {
		c(service)
	}
	return service
}

func TestIngressFor(t *testing.T) {
	nodes := []corev1.Node{
		*node("c", "10.0.0.3", "True"), *node("b", "10.0.0.2", "True"), *node("a", "10.0.0.1", "False"),
	}
	for name, test := range map[string]struct {
		service *corev1.Service
		nodes   []corev1.Node
		want    string
	}{
		"the first node that is ready":   {balanced(""), nodes, "10.0.0.2"},
		"it stays where it is":           {balanced("10.0.0.3"), nodes, "10.0.0.3"},
		"its node is not ready any more": {balanced("10.0.0.1"), nodes, "10.0.0.2"},
		"its node is gone":               {balanced("10.0.0.9"), nodes, "10.0.0.2"},
		"no node is ready":               {balanced("10.0.0.1"), nodes[2:], ""},
		"another type": {
			balanced("", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP }), nodes, "",
		},
		"another class, of somebody else": {
			balanced("", func(s *corev1.Service) { s.Spec.LoadBalancerClass = new("other") }), nodes, "",
		},
		"another class keeps what it has": {
			balanced("192.0.2.1", func(s *corev1.Service) { s.Spec.LoadBalancerClass = new("other") }), nodes,
			"192.0.2.1",
		},
	} {
		got := ""
		if ingress := ingressFor(test.service, test.nodes); len(ingress) > 0 {
			got = ingress[0].IP
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A Service follows the nodes: it gets an address, moves when its node is lost, and has none when there is none.
func TestAddressesAreWritten(t *testing.T) {
	first, second := node("a", "10.0.0.1", "True"), node("b", "10.0.0.2", "True")
	service := balanced("")
	c := fake.NewClientBuilder().WithObjects(service, first, second).WithStatusSubresource(service).Build()
	r := &reconciler{client: c}
	for _, step := range []struct {
		change func() error
		want   []string
	}{
		{func() error { return nil }, []string{"10.0.0.1"}},
		{func() error { return c.Delete(t.Context(), first) }, []string{"10.0.0.2"}},
		{func() error { return c.Delete(t.Context(), second) }, nil},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Reconcile(t.Context(),
			reconcile.Request{NamespacedName: client.ObjectKeyFromObject(service)}); err != nil {
			t.Fatal(err)
		}
		got := &corev1.Service{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(service), got); err != nil {
			t.Fatal(err)
		}
		var addresses []string
		for _, ingress := range got.Status.LoadBalancer.Ingress {
			addresses = append(addresses, ingress.IP)
		}
		if !slices.Equal(addresses, step.want) {
			t.Errorf("got %v, want %v", addresses, step.want)
		}
	}
	if _, err := r.Reconcile(t.Context(),
		reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "garden", Name: "gone"}}); err != nil {
		t.Errorf("a Service that is gone: %v", err)
	}
}

// A node concerns the Services that have addresses of nodes, and only when its address comes or goes.
func TestWhatNodesConcern(t *testing.T) {
	plain := balanced("", func(s *corev1.Service) { s.Name, s.Spec.Type = "plain", corev1.ServiceTypeClusterIP })
	other := balanced("", func(s *corev1.Service) { s.Name, s.Spec.LoadBalancerClass = "other", new("other") })
	r := &reconciler{client: fake.NewClientBuilder().WithObjects(balanced(""), plain, other).Build()}
	if got := r.balanced(t.Context(), node("a", "10.0.0.1", "True")); len(got) != 1 || got[0].Name != "gateway" {
		t.Errorf("got %v", got)
	}
	heartbeat := node("a", "10.0.0.1", "True")
	heartbeat.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
	for name, test := range map[string]struct {
		after *corev1.Node
		want  bool
	}{
		"a heartbeat": {heartbeat, false}, "not ready": {node("a", "10.0.0.1", "Unknown"), true},
		"another address": {node("a", "10.0.0.7", "True"), true},
	} {
		if got := otherAddresses().Update(event.UpdateEvent{
			ObjectOld: node("a", "10.0.0.1", "True"), ObjectNew: test.after,
		}); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
