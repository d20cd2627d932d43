package script

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
)

const gateCustomization = `
metadata: {name: gates, resourceVersion: "1", uid: a}
spec:
  target: {apiVersion: example.com/v1, kind: Gate}
  customizations:
    replicaResource:
      luaScript: |
        local kube = require("kube")
        function GetReplicas(obj)
          return obj.spec.size, kube.accuratePodRequirements(obj.spec.pod)
        end
    componentResource:
      luaScript: |
        function GetComponents(obj)
          return {{name = "door", replicas = obj.spec.size, replicaRequirements = {resourceRequest = {cpu = 0.5}}}}
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
          desiredObj.spec.owner = observedObj.spec.owner
          desiredObj.spec.nothing = {}
          return desiredObj
        end
    statusReflection:
      luaScript: |
        function ReflectStatus(observedObj)
          if observedObj.status == nil then return nil end
          return {open = observedObj.status.open, list = observedObj.status.list, empty = {}}
        end
    statusAggregation:
      luaScript: |
        function AggregateStatus(desiredObj, statusItems)
          desiredObj.status = {open = 0, clusters = {}}
          if statusItems == nil then return desiredObj end
          for i = 1, #statusItems do
            local item = statusItems[i]
            desiredObj.status.open = desiredObj.status.open + (item.status and item.status.open or 0)
            table.insert(desiredObj.status.clusters, item.clusterName .. ":" .. item.health .. ":" .. tostring(item.applied))
          end
          return desiredObj
        end
    healthInterpretation:
      luaScript: |
        function InterpretHealth(observedObj)
          return observedObj.status ~= nil and observedObj.status.open == observedObj.spec.size
        end
    dependencyInterpretation:
      luaScript: |
        function GetDependencies(obj)
          return {{apiVersion = "v1", kind = "Secret", namespace = obj.metadata.namespace, name = obj.spec.secret},
                  {apiVersion = "v1", kind = "ConfigMap", namespace = "x", labelSelector = {matchLabels = {a = "b"}}}}
        end
`

var gate = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gate"}

func customization(t testing.TB, text string) configv1alpha1.ResourceInterpreterCustomization {
	t.Helper()
	var c configv1alpha1.ResourceInterpreterCustomization
	if err := yaml.UnmarshalStrict([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func readObject(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return object
}

func taught(t testing.TB, texts ...string) *interpreter.Interpreter {
	t.Helper()
	var all []configv1alpha1.ResourceInterpreterCustomization
	for _, text := range texts {
		all = append(all, customization(t, text))
	}
	var compiler Compiler
	source, failures := compiler.Compile(t.Context(), all)
	if len(failures) > 0 {
		t.Fatal(failures)
	}
	i := interpreter.New()
	i.SetSources(source)
	return i
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestEveryOperation(t *testing.T) {
	i := taught(t, gateCustomization)
	object := readObject(t, `{apiVersion: example.com/v1, kind: Gate, metadata: {name: g, namespace: space, labels: {}}, spec: {size: 3, secret: s, tags: [],
		pod: {spec: {containers: [{name: c, resources: {requests: {cpu: 200m}}}]}}}}`)
	observed := object.DeepCopy()
	observed.Object["spec"].(map[string]any)["owner"] = "member"
	observed.Object["status"] = map[string]any{"open": int64(3), "list": []any{}}
	before := object.DeepCopy()

	workload, err := i.Workload(t.Context(), object)
	if err != nil || workload.Replicas != 3 || workload.Requirements.ResourceRequest.Cpu().String() != "200m" {
		t.Errorf("replicas: %+v, %v", workload, err)
	}
	components, err := i.Components(t.Context(), object)
	if err != nil || len(components) != 1 || components[0].Replicas != 3 ||
		components[0].ReplicaRequirements.ResourceRequest.Cpu().String() != "500m" {
		t.Errorf("components: %+v, %v", components, err)
	}
	revised, err := i.Revise(t.Context(), object, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := object.DeepCopy()
	want.Object["spec"].(map[string]any)["size"] = int64(1)
	if diff := cmp.Diff(want.Object, revised.Object); diff != "" {
		t.Errorf("revised: %s", diff)
	}
	retained, err := i.Retain(t.Context(), object, observed)
	if err != nil {
		t.Fatal(err)
	}
	want = object.DeepCopy()
	want.Object["spec"].(map[string]any)["owner"] = "member"
	if diff := cmp.Diff(want.Object, retained.Object); diff != "" {
		t.Errorf("retained: %s", diff)
	}
	reflected, err := i.Reflect(t.Context(), observed, 1)
	if err != nil || asJSON(t, reflected) != `{"list":[],"open":3}` {
		t.Errorf("reflected: %v, %v", reflected, err)
	}
	if reflected, err = i.Reflect(t.Context(), object, 1); err != nil || reflected != nil {
		t.Errorf("reflected nothing: %v, %v", reflected, err)
	}
	items := []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "a", Applied: true, Health: "Healthy", Status: &runtime.RawExtension{Raw: []byte(`{"open": 2}`)}},
		{ClusterName: "b", Health: "Unknown"},
	}
	status, known, err := i.Aggregate(t.Context(), object, items, 2)
	if err != nil || !known || asJSON(t, status) != `{"clusters":["a:Healthy:true","b:Unknown:nil"],"open":2}` {
		t.Errorf("aggregated: %s, %v", asJSON(t, status), err)
	}
	if status, _, err = i.Aggregate(t.Context(), object, nil, 0); err != nil || asJSON(t, status) != `{"open":0}` {
		t.Errorf("aggregated nothing: %s, %v", asJSON(t, status), err)
	}
	for _, tc := range []struct {
		object *unstructured.Unstructured
		want   interpreter.Health
	}{{object, interpreter.Unhealthy}, {observed, interpreter.Healthy}} {
		if health, err := i.Health(t.Context(), tc.object); health != tc.want || err != nil {
			t.Errorf("health: %v, %v", health, err)
		}
	}
	references, err := i.Dependencies(t.Context(), object)
	if err != nil || len(references) != 2 || references[0].Name != "s" || references[0].Namespace != "space" ||
		references[1].LabelSelector.MatchLabels["a"] != "b" {
		t.Errorf("dependencies: %+v, %v", references, err)
	}
	if diff := cmp.Diff(before.Object, object.Object); diff != "" {
		t.Errorf("the argument was changed: %s", diff)
	}
}

func TestFailuresNameTheScript(t *testing.T) {
	one := func(section, script string) string {
		return "metadata: {name: bad}\nspec: {target: {apiVersion: example.com/v1, kind: Gate}, customizations: {" +
			section + ": {luaScript: '" + script + "'}}}"
	}
	object := readObject(t, `{apiVersion: example.com/v1, kind: Gate, metadata: {name: g}, spec: {size: 3}}`)
	tests := map[string]struct{ section, script, want string }{
		"wrong type": {
			"healthInterpretation", `function InterpretHealth(o) return 1 end`,
			"customization bad, InterpretHealth: InterpretHealth returns a number",
		},
		"nil field": {
			"healthInterpretation", `function InterpretHealth(o) return o.status.x end`,
			"customization bad, InterpretHealth: line 1: attempt to index a non-table object(nil) with key",
		},
		"no replicas": {
			"replicaResource", `function GetReplicas(o) return o.spec.none end`,
			"customization bad, InterpretReplica: GetReplicas returns <nil> (a nil)",
		},
		"many replicas": {"replicaResource", `function GetReplicas(o) return 1e12 end`, "whole number"},
		"fraction":      {"replicaResource", `function GetReplicas(o) return 1.5 end`, "whole number"},
		"requirements": {
			"replicaResource", `function GetReplicas(o) return 1, {resourceRequest = {cpu = "many"}} end`, "result",
		},
		"another object": {
			"replicaRevision", `function ReviseReplica(o, n) o.metadata.name = "x" return o end`, "must stay",
		},
		"no object":     {"replicaRevision", `function ReviseReplica(o, n) end`, "must be the object"},
		"status a list": {"statusReflection", `function ReflectStatus(o) return {1} end`, "no object"},
		"incomplete": {
			"dependencyInterpretation", `function GetDependencies(o) return {{kind = "Secret", name = "x"}} end`,
			"has no apiVersion",
		},
		"without end": {
			"healthInterpretation", `function InterpretHealth(o) while true do end end`,
			"customization bad, InterpretHealth: line 1: the script did not end within",
		},
		"dependencies ev": {
			"dependencyInterpretation",
			`function GetDependencies(o) local t = {} for i = 1, 2000 do t[i] = {apiVersion = "v1", kind = "Secret", name = "x" .. i} end return t end`, "at most",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			i := taught(t, one(tc.section, tc.script))
			var err error
			switch tc.section {
			case "healthInterpretation":
				_, err = i.Health(t.Context(), object)
			case "replicaResource":
				_, err = i.Workload(t.Context(), object)
			case "replicaRevision":
				_, err = i.Revise(t.Context(), object, 1)
			case "statusReflection":
				_, err = i.Reflect(t.Context(), object, 1)
			case "dependencyInterpretation":
				_, err = i.Dependencies(t.Context(), object)
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCompiler(t *testing.T) {
	first := customization(t, `
metadata: {name: b, uid: b, resourceVersion: "1"}
spec: {target: {apiVersion: example.com/v1, kind: Gate}, customizations: {healthInterpretation: {luaScript: "function InterpretHealth() return true end"}}}`)
	second := customization(t, `
metadata: {name: a, uid: a, resourceVersion: "1"}
spec: {target: {apiVersion: example.com/v1, kind: Gate}, customizations: {healthInterpretation: {luaScript: "function InterpretHealth() return false end"}, statusReflection: {luaScript: "function"}}}`)
	var compiler Compiler
	source, failures := compiler.Compile(t.Context(), []configv1alpha1.ResourceInterpreterCustomization{first, second})
	if len(failures) != 2 || !strings.Contains(failures["a"].Error(),
		"customization a, InterpretStatus: at EOF: syntax error") ||
		!strings.Contains(failures["b"].Error(), "InterpretHealth of Gate is answered by customization a already") {
		t.Errorf("failures: %v", failures)
	}
	object := readObject(t, `{apiVersion: example.com/v1, kind: Gate, metadata: {name: g}}`)
	i := interpreter.New()
	i.SetSources(source)
	if health, err := i.Health(t.Context(), object); health != interpreter.Unhealthy || err != nil {
		t.Errorf("the first by name answers: %v, %v", health, err)
	}
	if _, err := i.Reflect(t.Context(), object, 1); err == nil {
		t.Error("a script that cannot run is an error, not the rule of somebody else")
	}
	before := source.rules[question{gate, configv1alpha1.InterpreterOperationInterpretHealth}]
	again, _ := compiler.Compile(t.Context(), []configv1alpha1.ResourceInterpreterCustomization{first, second})
	if again.rules[question{gate, configv1alpha1.InterpreterOperationInterpretHealth}] != before {
		t.Error("compiled again without need")
	}
	second.ResourceVersion, second.Spec.Customizations.StatusReflection = "2", nil
	changed, failures := compiler.Compile(t.Context(), []configv1alpha1.ResourceInterpreterCustomization{first, second})
	if failures["a"] != nil || changed.rules[question{
		gate, configv1alpha1.InterpreterOperationInterpretHealth,
	}] == before {
		t.Error("not compiled although it changed")
	}
}

func BenchmarkHealth(b *testing.B) {
	i := taught(b, gateCustomization)
	object :=
		readObject(b,
			`{apiVersion: example.com/v1, kind: Gate, metadata: {name: g}, spec: {size: 3}, status: {open: 3}}`)
	for b.Loop() {
		if _, err := i.Health(b.Context(), object); err != nil {
			b.Fatal(err)
		}
	}
}
