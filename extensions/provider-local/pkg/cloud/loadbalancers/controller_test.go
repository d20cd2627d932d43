package loadbalancers

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

func node(name, address string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: address}},
		},
	}
}

func balanced(present string, change ...func(*corev1.Service)) *corev1.Service {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gateway"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	if present != "" {
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: present}}
	}
	for _, c := range change {
		c(service)
	}
	return service
}

func TestIngressFor(t *testing.T) {
	nodes := []*corev1.Node{node("c", "10.0.0.3", "True"), node("b", "10.0.0.2", "True"), node("a", "10.0.0.1", "False")}
	for name, test := range map[string]struct {
		service *corev1.Service
		nodes   []*corev1.Node
		want    string
	}{
		"the first node that is ready":    {balanced(""), nodes, "10.0.0.2"},
		"it stays where it is":            {balanced("10.0.0.3"), nodes, "10.0.0.3"},
		"its node is not ready any more":  {balanced("10.0.0.1"), nodes, "10.0.0.2"},
		"its node is gone":                {balanced("10.0.0.9"), nodes, "10.0.0.2"},
		"no node is ready":                {balanced("10.0.0.1"), nodes[2:], ""},
		"another type":                    {balanced("", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP }), nodes, ""},
		"another class, of somebody else": {balanced("", func(s *corev1.Service) { s.Spec.LoadBalancerClass = ptr.To("other") }), nodes, ""},
		"another class keeps what it has": {balanced("192.0.2.1", func(s *corev1.Service) { s.Spec.LoadBalancerClass = ptr.To("other") }), nodes, "192.0.2.1"},
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

func TestAddressesAreWritten(t *testing.T) {
	client := fake.NewClientset(balanced(""), node("a", "10.0.0.1", "True"))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- New(client, logr.Discard()).Run(ctx) }()
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		service, err := client.CoreV1().Services("garden").Get(ctx, "gateway", metav1.GetOptions{})
		return err == nil && len(service.Status.LoadBalancer.Ingress) == 1 && service.Status.LoadBalancer.Ingress[0].IP == "10.0.0.1", err
	})
	if err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
