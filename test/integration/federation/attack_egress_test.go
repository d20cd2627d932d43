package federation

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// victim is a server in the seed that nobody from outside is to reach.
type victim struct {
	address string
	port    int32
	secure  bool
	reached atomic.Int32
}

const victimSays = "what only the seed may read"

func (w *world) startVictim(t *testing.T, secure bool) *victim {
	v := &victim{address: w.ownAddress(t), secure: secure}
	listener, err := net.Listen("tcp", net.JoinHostPort(v.address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	v.port = int32(listener.Addr().(*net.TCPAddr).Port)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(victimSays))
	}))
	_ = server.Listener.Close()
	server.Listener = counting{listener, &v.reached}
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return v
}

// counting counts the connections.
type counting struct {
	net.Listener
	n *atomic.Int32
}

func (c counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.n.Add(1)
	}
	return conn, err
}

// createIn makes objects of an attacker, with what status they please.
func (w *world) createIn(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		wanted := object.DeepCopyObject().(client.Object)
		if err := w.fleet.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.fleet.Delete(ctx, object, client.GracePeriodSeconds(0)) })
		switch o := object.(type) {
		case *corev1.Pod:
			o.Status = wanted.(*corev1.Pod).Status
		case *corev1.Node:
			o.Status = wanted.(*corev1.Node).Status
		default:
			continue
		}
		if err := w.fleet.Status().Update(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
}

// serviceOf leads to the victim.
func serviceOf(name string, v *victim) []client.Object {
	meta := metav1.ObjectMeta{
		Namespace: "default", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name},
	}
	return []client.Object{
		&corev1.Service{
			ObjectMeta: meta, Spec: corev1.ServiceSpec{
				ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Name: "p", Port: 443}},
			},
		},
		// This is what services/proxy asks.
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Endpoints", "metadata": map[string]any{"namespace": "default", "name": name},
			"subsets": []any{map[string]any{
				"addresses": []any{map[string]any{"ip": v.address}},
				"ports":     []any{map[string]any{"name": "p", "port": int64(v.port)}},
			}},
		}},
		&discoveryv1.EndpointSlice{
			ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{
				{Addresses: []string{v.address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}},
			},
			Ports: []discoveryv1.EndpointPort{
				{Name: new("p"), Port: new(v.port), Protocol: new(corev1.ProtocolTCP)},
			},
		},
	}
}

// The owner of a fleet may write any object of it, status included, and has its kube-apiserver, which runs in the seed,
// connect to what they say.
func TestAttackAddressesOfTheSeed(t *testing.T) {
	w := newWorld(t)
	plain, secure := w.startVictim(t, false), w.startVictim(t, true)
	w.createIn(t,
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "victim"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
			Status:     corev1.PodStatus{PodIP: plain.address, PodIPs: []corev1.PodIP{{IP: plain.address}}},
		},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "victim"}, Status: corev1.NodeStatus{
			Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: secure.address}},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: secure.port}},
		}},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "logs"},
			Spec:       corev1.PodSpec{NodeName: "victim", Containers: []corev1.Container{{Name: "c", Image: "c"}}},
		},
	)
	w.createIn(t, serviceOf("plain", plain)...)
	w.createIn(t, serviceOf("secure", secure)...)
	for what, path := range map[string]string{
		"pods/proxy":             "/api/v1/namespaces/default/pods/victim:" + strconv.Itoa(int(plain.port)) + "/proxy/",
		"services/proxy":         "/api/v1/namespaces/default/services/plain:p/proxy/",
		"services/proxy by TLS":  "/api/v1/namespaces/default/services/https:secure:p/proxy/",
		"nodes/proxy":            "/api/v1/nodes/victim/proxy/",
		"nodes/proxy, port":      "/api/v1/nodes/http:victim:" + strconv.Itoa(int(plain.port)) + "/proxy/",
		"pods/log of the node's": "/api/v1/namespaces/default/pods/logs/log",
	} {
		if said, err := answer(w.fleetConfig, http.MethodGet, path); err == nil || strings.Contains(said, victimSays) {
			t.Errorf("%s: got %q, %v", what, said, err)
		}
	}
	t.Run("webhook", func(t *testing.T) {
		w.asksNoWebhook(t, admissionregistrationv1.WebhookClientConfig{
			Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "secure"},
		})
	})
	for _, address := range []string{secure.address, "127.0.0.1", "[::ffff:" + secure.address + "]"} {
		t.Run("webhook at "+address, func(t *testing.T) {
			w.asksNoWebhook(t, admissionregistrationv1.WebhookClientConfig{
				URL: new(fmt.Sprintf("https://%s:%d/", address, secure.port)),
			})
		})
	}
	t.Run("aggregated API", func(t *testing.T) { w.registersNoAPI(t, "secure") })
	if n, m := plain.reached.Load(), secure.reached.Load(); n+m > 0 {
		t.Errorf("connections reached the seed's network: %d plain, %d with TLS", n, m)
	}
}

// asksNoWebhook has the kube-apiserver ask a webhook whether an object may be created.
func (w *world) asksNoWebhook(t *testing.T, webhook admissionregistrationv1.WebhookClientConfig) {
	w.createIn(t, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "victim"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "victim.default.svc", AdmissionReviewVersions: []string{"v1"},
			SideEffects:    new(admissionregistrationv1.SideEffectClassNone),
			ClientConfig:   webhook,
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"attack": "webhook"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
				},
			}},
		}},
	})
	asked := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "asked", Labels: map[string]string{"attack": "webhook"},
		},
	}
	eventually(t, "the webhook is asked, in vain", func() error {
		err := w.fleet.Create(ctx, asked.DeepCopy(), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			return fmt.Errorf("got %v", err)
		}
		refusedWith(t, err, "403")
		return nil
	})
}

// registersNoAPI has the kube-apiserver ask a Service for an API.
func (w *world) registersNoAPI(t *testing.T, service string) {
	registration := &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1.victim.example.com"},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: "victim.example.com", Version: "v1", InsecureSkipTLSVerify: true, GroupPriorityMinimum: 100,
			VersionPriority: 100,
			Service:         &apiregistrationv1.ServiceReference{Namespace: "default", Name: service},
		},
	}
	w.createIn(t, registration)
	eventually(t, "there is no way to the API", func() error {
		if err := w.fleet.Get(ctx, client.ObjectKeyFromObject(registration), registration); err != nil {
			return err
		}
		for _, condition := range registration.Status.Conditions {
			if condition.Type == apiregistrationv1.Available && condition.Status == apiregistrationv1.ConditionFalse &&
				strings.Contains(condition.Message, "403") {
				return nil
			}
		}
		return fmt.Errorf("got %+v", registration.Status.Conditions)
	})
	if _, err := answer(w.fleetConfig, http.MethodGet,
		"/apis/victim.example.com/v1"); !apierrors.IsServiceUnavailable(err) {
		refusedWith(t, err, "503")
	}
}
