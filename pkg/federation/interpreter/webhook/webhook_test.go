package webhook

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
)

func gate() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Gate", "metadata": map[string]any{"name": "g", "namespace": "ns"},
		"spec": map[string]any{"size": int64(3)},
	}}
}

// serve runs a webhook that answers with what a function gives.
func serve(t *testing.T, answer func(w http.ResponseWriter,
	request *configv1alpha1.ResourceInterpreterRequest)) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var question configv1alpha1.ResourceInterpreterContext
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil ||
			question.Kind != "ResourceInterpreterContext" || question.APIVersion != "config.karmada.io/v1alpha1" {
			t.Errorf("question %+v: %v", question, err)
		}
		answer(w, question.Request)
	}))
	t.Cleanup(server.Close)
	return server
}

func respond(w http.ResponseWriter, request *configv1alpha1.ResourceInterpreterRequest,
	response configv1alpha1.ResourceInterpreterResponse) {
	response.UID, response.Successful = request.UID, true
	_ = json.NewEncoder(w).Encode(configv1alpha1.ResourceInterpreterContext{Response: &response})
}

func certificate(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func configuration(server *httptest.Server) configv1alpha1.ResourceInterpreterWebhookConfiguration {
	return configv1alpha1.ResourceInterpreterWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "gates"},
		Webhooks: []configv1alpha1.ResourceInterpreterWebhook{{
			Name: "gates.example.com", TimeoutSeconds: new(int32(1)), InterpreterContextVersions: []string{"v1alpha1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &server.URL, CABundle: certificate(server)},
			Rules: []configv1alpha1.RuleWithOperations{{
				Operations: []configv1alpha1.InterpreterOperation{"*"},
				Rule: configv1alpha1.Rule{
					APIGroups: []string{"example.com"}, APIVersions: []string{"*"}, Kinds: []string{"Gate"},
				},
			}},
		}},
	}
}

func taught(t *testing.T, server *httptest.Server) *interpreter.Interpreter {
	t.Helper()
	var builder Builder
	hooks, failures := builder.Build([]configv1alpha1.ResourceInterpreterWebhookConfiguration{configuration(server)})
	if len(failures) > 0 {
		t.Fatal(failures)
	}
	i := interpreter.New()
	i.SetSources(hooks)
	return i
}

func TestEveryOperation(t *testing.T) {
	patchType := configv1alpha1.PatchTypeJSONPatch
	patch := func(text string, arguments ...any) configv1alpha1.ResourceInterpreterResponse {
		return configv1alpha1.ResourceInterpreterResponse{
			Patch: []byte(fmt.Sprintf(text, arguments...)), PatchType: &patchType,
		}
	}
	server := serve(t, func(w http.ResponseWriter, request *configv1alpha1.ResourceInterpreterRequest) {
		var response configv1alpha1.ResourceInterpreterResponse
		switch request.Operation {
		case configv1alpha1.InterpreterOperationInterpretReplica:
			response.Replicas, response.ReplicaRequirements = new(int32(3)),
				&workv1alpha2.ReplicaRequirements{PriorityClassName: "high"}
		case configv1alpha1.InterpreterOperationInterpretComponent:
			response.Components = []workv1alpha2.Component{{Name: "door", Replicas: 2}}
		case configv1alpha1.InterpreterOperationReviseReplica:
			response = patch(`[{"op": "replace", "path": "/spec/size", "value": %d}]`, *request.DesiredReplicas)
		case configv1alpha1.InterpreterOperationRetain:
			response = patch(`[{"op": "add", "path": "/spec/observed", "value": %s}]`, request.ObservedObject.Raw)
		case configv1alpha1.InterpreterOperationAggregateStatus:
			response = patch(`[{"op": "add", "path": "/status", "value": {"members": %d}}]`,
				len(request.AggregatedStatus))
		case configv1alpha1.InterpreterOperationInterpretStatus:
			response.RawStatus = &runtime.RawExtension{Raw: []byte(`{"open": 2}`)}
		case configv1alpha1.InterpreterOperationInterpretHealth:
			response.Healthy = new(request.Name == "g" && request.Namespace == "ns" && request.Kind.Kind == "Gate")
		case configv1alpha1.InterpreterOperationInterpretDependency:
			response.Dependencies = []configv1alpha1.DependentObjectReference{
				{APIVersion: "v1", Kind: "Secret", Namespace: "ns", Name: "s"},
			}
		}
		respond(w, request, response)
	})
	i, ctx := taught(t, server), t.Context()

	if w, err := i.Workload(ctx, gate()); err != nil || w.Replicas != 3 || w.Requirements.PriorityClassName != "high" {
		t.Errorf("replicas: %+v, %v", w, err)
	}
	if c, err := i.Components(ctx, gate()); err != nil || len(c) != 1 || c[0].Replicas != 2 {
		t.Errorf("components: %+v, %v", c, err)
	}
	if o, err := i.Revise(ctx, gate(), 5); err != nil || o.Object["spec"].(map[string]any)["size"] != int64(5) {
		t.Errorf("revised: %v, %v", o, err)
	}
	if o, err := i.Retain(ctx, gate(), gate()); err != nil ||
		o.Object["spec"].(map[string]any)["observed"].(map[string]any)["kind"] != "Gate" {
		t.Errorf("retained: %v, %v", o, err)
	}
	if status, known, err := i.Aggregate(ctx, gate(), make([]workv1alpha2.AggregatedStatusItem, 2), 2); err != nil ||
		!known || status["members"] != int64(2) {
		t.Errorf("aggregated: %v, %v", status, err)
	}
	if status, err := i.Reflect(ctx, gate(), 1); err != nil || fmt.Sprint(status) != "map[open:2]" {
		t.Errorf("reflected: %v, %v", status, err)
	}
	if health, err := i.Health(ctx, gate()); err != nil || health != interpreter.Healthy {
		t.Errorf("health: %v, %v", health, err)
	}
	if d, err := i.Dependencies(ctx, gate()); err != nil || len(d) != 1 || d[0].Name != "s" {
		t.Errorf("dependencies: %v, %v", d, err)
	}
	other := gate()
	other.SetKind("Door")
	if health, err := i.Health(ctx, other); err != nil || health != interpreter.Unknown {
		t.Errorf("another kind: %v, %v", health, err)
	}
	if pruned, err := i.Prune(ctx, gate()); err != nil || pruned.GetName() != "g" {
		t.Errorf("pruned, although it is not asked: %v, %v", pruned, err)
	}
}

// Whatever a webhook does, the question ends with an error that says why, and that may be asked again.
func TestHostileWebhooks(t *testing.T) {
	patched := func(patchType configv1alpha1.PatchType,
		patch string) func(http.ResponseWriter, *configv1alpha1.ResourceInterpreterRequest) {
		return func(w http.ResponseWriter, request *configv1alpha1.ResourceInterpreterRequest) {
			respond(w, request, configv1alpha1.ResourceInterpreterResponse{Patch: []byte(patch), PatchType: &patchType})
		}
	}
	explosion := `[{"op": "add", "path": "/spec/a", "value": "` + strings.Repeat("x", 1000) + `"}`
	for i := range 40 {
		explosion += fmt.Sprintf(`,{"op": "copy", "from": "/spec", "path": "/spec/a%d"}`, i)
	}
	explosion += "]"
	ended := make(chan struct{})
	tests := map[string]struct {
		answer func(http.ResponseWriter, *configv1alpha1.ResourceInterpreterRequest)
		want   string
	}{
		"silent": {
			func(http.ResponseWriter, *configv1alpha1.ResourceInterpreterRequest) { <-ended }, "no answer within 1s",
		},
		"slow": {func(w http.ResponseWriter, _ *configv1alpha1.ResourceInterpreterRequest) {
			w.(http.Flusher).Flush()
			<-ended
		}, "no complete answer within 1s"},
		"huge": {func(w http.ResponseWriter, _ *configv1alpha1.ResourceInterpreterRequest) {
			_, _ = w.Write(bytes.Repeat([]byte(" "), maxAnswer+10))
		}, "more than"},
		"no JSON": {func(w http.ResponseWriter, _ *configv1alpha1.ResourceInterpreterRequest) {
			_, _ = w.Write([]byte("hello"))
		}, "no ResourceInterpreterContext"},
		"empty": {func(w http.ResponseWriter, _ *configv1alpha1.ResourceInterpreterRequest) {
			_, _ = w.Write([]byte("{}"))
		}, "no response"},
		"status": {
			func(w http.ResponseWriter, _ *configv1alpha1.ResourceInterpreterRequest) { w.WriteHeader(500) },
			"status 500",
		},
		"redirect": {func(w http.ResponseWriter, _ *configv1alpha1.ResourceInterpreterRequest) {
			w.Header().Set("Location", "https://example.com")
			w.WriteHeader(307)
		}, "status 307"},
		"another UID": {func(w http.ResponseWriter, _ *configv1alpha1.ResourceInterpreterRequest) {
			_, _ = w.Write([]byte(`{"response": {"uid": "x", "successful": true}}`))
		}, "another question"},
		"not successful": {func(w http.ResponseWriter, r *configv1alpha1.ResourceInterpreterRequest) {
			fmt.Fprintf(w,
				`{"response": {"uid": %q, "successful": false, "status": {"message": "no idea", "code": 422}}}`, r.UID)
		}, "no idea (code 422)"},
		"patch type": {patched("Merge", `[]`), "patchType"},
		"no patch":   {patched("JSONPatch", `{}`), "response.patch"},
		"patch of a path": {
			patched("JSONPatch", `[{"op": "replace", "path": "/spec/none/x", "value": 1}]`), "response.patch",
		},
		"far index": {
			patched("JSONPatch",
				`[{"op": "add", "path": "/spec/l", "value": []}, {"op": "add", "path": "/spec/l/1000000000", "value": 1}]`), "response.patch",
		},
		"another object": {
			patched("JSONPatch", `[{"op": "replace", "path": "/metadata/name", "value": "x"}]`),
			"changes kind, namespace or name",
		},
		"no object": {patched("JSONPatch", `[{"op": "replace", "path": "", "value": 1}]`), "response.patch"},
		"explosion": {patched("JSONPatch", explosion), "response.patch"},
		"many operations": {
			patched("JSONPatch", "["+strings.Repeat(`{"op": "test", "path": "/kind", "value": "Gate"},`, 1001)+
				`{"op": "test", "path": "/kind", "value": "Gate"}]`), "at most 1000",
		},
	}
	t.Cleanup(func() { close(ended) })
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := taught(t, serveUntil(t, ended, tc.answer)).Revise(t.Context(), gate(), 1)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !errors.Is(err, interpreter.ErrTemporary) {
				t.Errorf("got %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), "webhook gates.example.com, ReviseReplica: ") {
				t.Errorf("does not name the webhook: %v", err)
			}
		})
	}
}

// serveUntil runs a webhook whose handlers may wait until the end of the test, which closes it afterwards.
func serveUntil(t *testing.T, ended chan struct{},
	answer func(http.ResponseWriter, *configv1alpha1.ResourceInterpreterRequest)) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var question configv1alpha1.ResourceInterpreterContext
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
			return
		}
		answer(w, question.Request)
	}))
	server.StartTLS()
	go func() {
		<-ended
		server.Close()
	}()
	return server
}

func TestUnknownAuthority(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, request *configv1alpha1.ResourceInterpreterRequest) {
		respond(w, request, configv1alpha1.ResourceInterpreterResponse{Healthy: new(true)})
	})
	c := configuration(server)
	c.Webhooks[0].ClientConfig.CABundle = nil
	var builder Builder
	hooks, _ := builder.Build([]configv1alpha1.ResourceInterpreterWebhookConfiguration{c})
	i := interpreter.New()
	i.SetSources(hooks)
	if _, err := i.Health(t.Context(), gate()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
}

// A webhook that fails again and again gets a pause, and another chance after it.
func TestPauseAfterFailures(t *testing.T) {
	var asked atomic.Int32
	var works atomic.Bool
	server := serve(t, func(w http.ResponseWriter, request *configv1alpha1.ResourceInterpreterRequest) {
		asked.Add(1)
		if works.Load() {
			respond(w, request, configv1alpha1.ResourceInterpreterResponse{Healthy: new(true)})
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	var builder Builder
	hooks, _ := builder.Build([]configv1alpha1.ResourceInterpreterWebhookConfiguration{configuration(server)})
	now := time.Now()
	hooks.list[0].now = func() time.Time { return now }
	i := interpreter.New()
	i.SetSources(hooks)
	for range maxFailures + 10 {
		if _, err := i.Health(t.Context(), gate()); err == nil {
			t.Fatal("no error")
		}
	}
	if n := asked.Load(); n != maxFailures {
		t.Errorf("asked %d times", n)
	}
	works.Store(true)
	now = now.Add(pause)
	if health, err := i.Health(t.Context(), gate()); err != nil || health != interpreter.Healthy {
		t.Errorf("after the pause: %v, %v", health, err)
	}
	again, _ := builder.Build([]configv1alpha1.ResourceInterpreterWebhookConfiguration{configuration(server)})
	if again.list[0] != hooks.list[0] {
		t.Error("a configuration that did not change is built again")
	}
}

func TestBrokenConfigurations(t *testing.T) {
	server := serve(t, nil)
	tests := map[string]struct {
		change func(*configv1alpha1.ResourceInterpreterWebhook)
		want   string
	}{
		"no version": {
			func(w *configv1alpha1.ResourceInterpreterWebhook) { w.InterpreterContextVersions = []string{"v2"} },
			"interpreterContextVersions",
		},
		"no address": {func(w *configv1alpha1.ResourceInterpreterWebhook) { w.ClientConfig.URL = nil }, "give a url"},
		"plain HTTP": {
			func(w *configv1alpha1.ResourceInterpreterWebhook) { w.ClientConfig.URL = new("http://example.com") },
			"must be https",
		},
		"user": {func(w *configv1alpha1.ResourceInterpreterWebhook) {
			w.ClientConfig.URL = new("https://a:b@example.com")
		}, "without user"},
		"bundle": {
			func(w *configv1alpha1.ResourceInterpreterWebhook) { w.ClientConfig.CABundle = []byte("x") }, "caBundle",
		},
		"service without a fleet": {func(w *configv1alpha1.ResourceInterpreterWebhook) {
			w.ClientConfig.Service = &admissionregistrationv1.ServiceReference{Namespace: "a", Name: "b"}
		}, "clientConfig.service"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := configuration(server)
			tc.change(&c.Webhooks[0])
			var builder Builder
			hooks, failures := builder.Build([]configv1alpha1.ResourceInterpreterWebhookConfiguration{c})
			if err := failures["gates"]; err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
			i := interpreter.New()
			i.SetSources(hooks)
			if _, err := i.Health(t.Context(), gate()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("answer: %v", err)
			}
		})
	}
}

func TestServices(t *testing.T) {
	service := func(name string, change func(*corev1.Service)) *corev1.Service {
		s := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1"},
		}
		change(s)
		return s
	}
	reader := fake.NewClientBuilder().WithObjects(
		service("external", func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "hook.example.com"
		}),
		service("balanced", func(s *corev1.Service) {
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
		}),
		service("addressed", func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"2001:db8::1"} }),
		service("inside", func(*corev1.Service) {}),
	).Build()
	tests := map[string]struct {
		reference admissionregistrationv1.ServiceReference
		want      string
	}{
		"external name": {
			admissionregistrationv1.ServiceReference{Namespace: "ns", Name: "external", Path: new("gates")},
			"https://hook.example.com:443/gates",
		},
		"load balancer": {
			admissionregistrationv1.ServiceReference{Namespace: "ns", Name: "balanced", Port: new(int32(8443))},
			"https://192.0.2.1:8443",
		},
		"external IP": {
			admissionregistrationv1.ServiceReference{Namespace: "ns", Name: "addressed"}, "https://[2001:db8::1]:443",
		},
		"cluster IP": {admissionregistrationv1.ServiceReference{Namespace: "ns", Name: "inside"}, "give a url"},
		"absent":     {admissionregistrationv1.ServiceReference{Namespace: "ns", Name: "none"}, "not found"},
	}
	for name, tc := range tests {
		got, err := serviceURL(t.Context(), client.Reader(reader), &tc.reference)
		if err != nil {
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v", name, err)
			}
		} else if got.String() != tc.want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func FuzzPatch(f *testing.F) {
	f.Add([]byte(`[{"op": "add", "path": "/spec/a", "value": 1}]`))
	f.Add([]byte(`[{"op": "move", "from": "/spec", "path": "/metadata/x"}]`))
	f.Add([]byte(`[{"op": "remove", "path": ""}]`))
	f.Fuzz(func(t *testing.T, patch []byte) {
		if result, err := apply(gate(), patch); err == nil && result.GetName() != "g" {
			t.Error("another object")
		}
	})
}
