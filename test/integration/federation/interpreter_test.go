package federation

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// customKind is a definition that the fleet and its members get.
const customKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]ss.%[1]s.example.com}
spec:
  group: %[1]s.example.com
  scope: Namespaced
  names: {kind: %[3]s, plural: %[2]ss, singular: %[2]s}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const customPolicy = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: custom}
spec:
  resourceSelectors: [{apiVersion: %s.example.com/v1, kind: %s}]
  placement:
    clusterAffinity: {clusterNames: [member1, member2]}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference:
        staticWeightList:
        - {targetCluster: {clusterNames: [member1]}, weight: 2}
        - {targetCluster: {clusterNames: [member2]}, weight: 1}
`

// teachKind installs a definition everywhere until the test ends.
func (w *world) teachKind(t *testing.T, group, kind string) {
	t.Helper()
	definition := parse(t, fmt.Sprintf(customKind, group, strings.ToLower(kind), kind))
	all := []client.Client{w.fleet, w.member["member1"], w.member["member2"]}
	t.Cleanup(func() { w.notServed(t, group+".example.com") })
	for _, c := range all {
		apply(t, c, "", definition...)
		t.Cleanup(func() { remove(t, c, definition[0].DeepCopy()) })
	}
	eventually(t, kind+" is served", func() error {
		for _, c := range all {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion(group + ".example.com/v1")
			list.SetKind(kind + "List")
			if err := c.List(ctx, list); err != nil {
				return err
			}
		}
		return nil
	})
}

// sizes waits until the members have these sizes of the object x.
func (w *world) sizes(t *testing.T, namespace, group, kind string, want ...int64) {
	t.Helper()
	for i, name := range memberNames {
		eventually(t, fmt.Sprintf("%s has size %d", name, want[i]), func() error {
			object, err := get(w.member[name], group+".example.com/v1", kind, namespace, "x")
			if err != nil {
				return err
			}
			if got, _, _ := unstructured.NestedInt64(object.Object, "spec", "size"); got != want[i] {
				return fmt.Errorf("size is %d", got)
			}
			return nil
		})
	}
}

func setStatus(t *testing.T, c client.Client, object *unstructured.Unstructured, status map[string]any) {
	t.Helper()
	before := object.DeepCopy()
	object.Object["status"] = status
	if err := c.Status().Patch(ctx, object, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func (w *world) customBinding(namespace, kind string) (*workv1alpha2.ResourceBinding, error) {
	b := &workv1alpha2.ResourceBinding{}
	return b, w.fleet.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "x-" + strings.ToLower(kind)}, b)
}

// healths waits until the binding tells this health of both members.
func (w *world) healths(t *testing.T, namespace, kind string, want workv1alpha2.ResourceHealth) {
	t.Helper()
	eventually(t, "health is "+string(want), func() error {
		b, err := w.customBinding(namespace, kind)
		if err != nil {
			return err
		}
		if len(b.Status.AggregatedStatus) != 2 {
			return fmt.Errorf("statuses: %+v", b.Status.AggregatedStatus)
		}
		for _, item := range b.Status.AggregatedStatus {
			if item.Health != want {
				return fmt.Errorf("%s is %s: %s", item.ClusterName, item.Health, item.AppliedMessage)
			}
		}
		return nil
	})
}

const gateRules = `
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: gates}
spec:
  target: {apiVersion: lua.example.com/v1, kind: Gate}
  customizations:
    replicaResource:
      luaScript: |
        function GetReplicas(obj)
          return obj.spec.size, nil
        end
    replicaRevision:
      luaScript: |
        function ReviseReplica(obj, desiredReplica)
          obj.spec.size = desiredReplica
          return obj
        end
    retention:
      luaScript: |
        function Retain(desiredObj, observedObj)
          desiredObj.spec.note = observedObj.spec.note
          return desiredObj
        end
    statusAggregation:
      luaScript: |
        function AggregateStatus(desiredObj, statusItems)
          local open = 0
          for i = 1, #(statusItems or {}) do
            if statusItems[i].status ~= nil then open = open + statusItems[i].status.open end
          end
          desiredObj.status = {open = open}
          return desiredObj
        end
    healthInterpretation:
      luaScript: |
        function InterpretHealth(observedObj)
          return observedObj.status ~= nil and observedObj.status.open == observedObj.spec.size
        end
`

// A kind that nobody knew is divided, judged and added up as soon as a customization teaches it; until then it goes to
// all members as it is.
func TestCustomizationTeachesAKind(t *testing.T) {
	w := newWorld(t)
	w.teachKind(t, "lua", "Gate")
	w.startFederation(t)
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, fmt.Sprintf(customPolicy, "lua", "Gate"))...)
	apply(t, w.fleet, namespace, parse(t,
		`{apiVersion: lua.example.com/v1, kind: Gate, metadata: {name: x}, spec: {size: 6, list: [], object: {}}}`)...)
	w.sizes(t, namespace, "lua", "Gate", 6, 6)

	rules := parse(t, gateRules)[0]
	apply(t, w.fleet, "", rules)
	t.Cleanup(func() { _ = w.fleet.Delete(ctx, rules) })
	w.sizes(t, namespace, "lua", "Gate", 4, 2)
	w.healths(t, namespace, "Gate", workv1alpha2.ResourceUnhealthy)

	for i, name := range memberNames {
		object, err := get(w.member[name], "lua.example.com/v1", "Gate", namespace, "x")
		if err != nil {
			t.Fatal(err)
		}
		if list, _, _ := unstructured.NestedSlice(object.Object, "spec", "list"); list == nil {
			t.Errorf("%s: an empty list is none any more: %v", name, object.Object["spec"])
		}
		setStatus(t, w.member[name], object, map[string]any{"open": int64(4 - 2*i)})
	}
	w.healths(t, namespace, "Gate", workv1alpha2.ResourceHealthy)
	eventually(t, "the status is added up", func() error {
		object, err := get(w.fleet, "lua.example.com/v1", "Gate", namespace, "x")
		if err != nil {
			return err
		}
		if open, _, _ := unstructured.NestedInt64(object.Object, "status", "open"); open != 6 {
			return fmt.Errorf("status is %v", object.Object["status"])
		}
		return nil
	})

	// what the member writes stays, also when the object changes
	object, err := get(w.member["member1"], "lua.example.com/v1", "Gate", namespace, "x")
	if err != nil {
		t.Fatal(err)
	}
	before := object.DeepCopy()
	object.Object["spec"].(map[string]any)["note"] = "mine"
	if err := w.member["member1"].Patch(ctx, object, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	apply(t, w.fleet, namespace, parse(t,
		`{apiVersion: lua.example.com/v1, kind: Gate, metadata: {name: x}, spec: {size: 9, note: theirs}}`)...)
	w.sizes(t, namespace, "lua", "Gate", 6, 3)
	object, err = get(w.member["member1"], "lua.example.com/v1", "Gate", namespace, "x")
	if err != nil {
		t.Fatal(err)
	}
	if note, _, _ := unstructured.NestedString(object.Object, "spec", "note"); note != "mine" {
		t.Errorf("note is %q", note)
	}
}

// A script that never ends, and one that cannot run, are told about, and hurt no other object.
func TestBadCustomizationIsReported(t *testing.T) {
	w := newWorld(t)
	w.teachKind(t, "bad", "Door")
	w.startFederation(t)
	namespace := w.newNamespace(t)
	rules := parse(t, `
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: doors}
spec:
  target: {apiVersion: bad.example.com/v1, kind: Door}
  customizations:
    healthInterpretation: {luaScript: "function InterpretHealth(o) while true do end end"}
    statusAggregation: {luaScript: "function AggregateStatus("}
`)[0]
	apply(t, w.fleet, "", rules)
	t.Cleanup(func() { _ = w.fleet.Delete(ctx, rules) })
	apply(t, w.fleet, namespace, parse(t, fmt.Sprintf(customPolicy, "bad", "Door"))...)
	apply(t, w.fleet, namespace, parse(t,
		`{apiVersion: bad.example.com/v1, kind: Door, metadata: {name: x}, spec: {size: 1}}`)...)
	w.sizes(t, namespace, "bad", "Door", 1, 1)
	w.healths(t, namespace, "Door", workv1alpha2.ResourceUnknown)
	eventually(t, "the binding says why", func() error {
		b, err := w.customBinding(namespace, "Door")
		if err != nil {
			return err
		}
		for _, item := range b.Status.AggregatedStatus {
			if !item.Applied || !strings.Contains(item.AppliedMessage, "customization doors, InterpretHealth") {
				return fmt.Errorf("%+v", item)
			}
		}
		return nil
	})
	eventually(t, "an event tells of the script that cannot run", func() error {
		var list corev1.EventList
		if err := w.fleet.List(ctx, &list); err != nil {
			return err
		}
		for _, event := range list.Items {
			if event.InvolvedObject.Name == "doors" && event.Reason == "InvalidScript" &&
				strings.Contains(event.Message, "AggregateStatus") {
				return nil
			}
		}
		return errors.New("no such event")
	})
	apply(t, w.fleet, namespace, input(t, "000-karmada-nginx-3docs")[:1]...)
	if object, err := deployment(w.fleet, namespace); err != nil || object.GetName() != "nginx" {
		t.Fatal(err)
	}
}

// A webhook answers for a kind; while it fails the binding waits, and goes on when it answers.
func TestWebhookTeachesAKind(t *testing.T) {
	w := newWorld(t)
	w.teachKind(t, "hook", "Bell")
	var works atomic.Bool
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var question configv1alpha1.ResourceInterpreterContext
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil || !works.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		request, response := question.Request,
			&configv1alpha1.ResourceInterpreterResponse{UID: question.Request.UID, Successful: true}
		switch request.Operation {
		case configv1alpha1.InterpreterOperationInterpretReplica:
			var object struct{ Spec struct{ Size int32 } }
			if err := json.Unmarshal(request.Object.Raw, &object); err != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			response.Replicas = &object.Spec.Size
		case configv1alpha1.InterpreterOperationReviseReplica:
			patchType := configv1alpha1.PatchTypeJSONPatch
			response.PatchType = &patchType
			response.Patch = fmt.Appendf(nil, `[{"op": "replace", "path": "/spec/size", "value": %d}]`,
				*request.DesiredReplicas)
		case configv1alpha1.InterpreterOperationInterpretHealth:
			response.Healthy = new(true)
		}
		_ = json.NewEncoder(w).Encode(configv1alpha1.ResourceInterpreterContext{Response: response})
	}))
	t.Cleanup(server.Close)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	configuration := &configv1alpha1.ResourceInterpreterWebhookConfiguration{}
	configuration.Name = "bells"
	hook := configv1alpha1.ResourceInterpreterWebhook{
		Name: "bells.example.com", InterpreterContextVersions: []string{"v1alpha1"},
		Rules: []configv1alpha1.RuleWithOperations{{
			Operations: []configv1alpha1.InterpreterOperation{"InterpretReplica", "ReviseReplica", "InterpretHealth"},
			Rule: configv1alpha1.Rule{
				APIGroups: []string{"hook.example.com"}, APIVersions: []string{"v1"}, Kinds: []string{"Bell"},
			},
		}},
	}
	hook.ClientConfig.URL = &server.URL
	hook.ClientConfig.CABundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	configuration.Webhooks = []configv1alpha1.ResourceInterpreterWebhook{hook}
	if err := w.fleet.Create(ctx, configuration); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.fleet.Delete(ctx, configuration) })
	apply(t, w.fleet, namespace, parse(t, fmt.Sprintf(customPolicy, "hook", "Bell"))...)
	apply(t, w.fleet, namespace, parse(t,
		`{apiVersion: hook.example.com/v1, kind: Bell, metadata: {name: x}, spec: {size: 3}}`)...)
	works.Store(true)
	w.sizes(t, namespace, "hook", "Bell", 2, 1)
	w.healths(t, namespace, "Bell", workv1alpha2.ResourceHealthy)
}

// Configurations that could never work are refused when they are written.
func TestBadWebhookConfigurationsAreRefused(t *testing.T) {
	w := newWorld(t)
	tests := map[string]string{
		"no address":      `{name: a.example.com, clientConfig: {}, interpreterContextVersions: [v1alpha1]}`,
		"plain HTTP":      `{name: a.example.com, clientConfig: {url: "http://example.com"}, interpreterContextVersions: [v1alpha1]}`,
		"another version": `{name: a.example.com, clientConfig: {url: "https://example.com"}, interpreterContextVersions: [v2]}`,
		"a long wait":     `{name: a.example.com, clientConfig: {url: "https://example.com"}, interpreterContextVersions: [v1alpha1], timeoutSeconds: 31}`,
		"operation":       `{name: a.example.com, clientConfig: {url: "https://example.com"}, interpreterContextVersions: [v1alpha1], rules: [{operations: [Guess], apiGroups: [""], apiVersions: [v1], kinds: [Pod]}]}`,
	}
	for name, hook := range tests {
		object :=
			parse(t, "{apiVersion: config.karmada.io/v1alpha1, kind: ResourceInterpreterWebhookConfiguration, "+
				"metadata: {name: refused}, webhooks: ["+hook+"]}")[0]
		if err := w.fleet.Create(ctx, object); err == nil {
			t.Errorf("%s is accepted", name)
			_ = w.fleet.Delete(ctx, object)
		}
	}
}
