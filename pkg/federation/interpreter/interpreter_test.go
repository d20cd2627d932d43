package interpreter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := unstructured.UnstructuredJSONScheme.Decode(data, nil, runtime.Object(object)); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestWorkloadOf(t *testing.T) {
	const pod = `{initContainers: [{name: i, resources: {requests: {cpu: "1"}}}], containers: [{name: a, resources: {requests: {cpu: 200m, memory: 1Gi}}}, {name: b, resources: {requests: {cpu: 300m}}}]}`
	tests := map[string]struct {
		object   string
		replicas int32
		cpu      string
	}{
		"Deployment": {
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replicas: 3, template: {spec: " + pod +
				"}}}", 3, "1",
		},
		"default of one": {
			"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}, spec: {template: {spec: {containers: []}}}}",
			1, "0",
		},
		"Job": {
			"{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {parallelism: 4, template: {spec: " +
				"{containers: []}}}}", 4, "0",
		},
		"Pod": {"{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: " + pod + "}", 1, "1"},
		"a Job of somebody else's": {
			"{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: x}, spec: {parallelism: 4}}", -1, "",
		},
		"ConfigMap": {"{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}", -1, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, err := workloadOf(parse(t, tc.object))
			if err != nil {
				t.Fatal(err)
			}
			if w == nil {
				if tc.replicas >= 0 {
					t.Fatal("is a workload")
				}
				return
			}
			if cpu := w.Requirements.ResourceRequest.Cpu().String(); w.Replicas != tc.replicas || cpu != tc.cpu {
				t.Errorf("got %d replicas, %s CPU; want %d, %s", w.Replicas, cpu, tc.replicas, tc.cpu)
			}
		})
	}
}

func TestPrune(t *testing.T) {
	tests := map[string]struct{ template, want string }{
		"identity and status go": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: d, uid: u, resourceVersion: "1", generation: 2, creationTimestamp: null, finalizers: [f], labels: {a: b}, annotations: {kubectl.kubernetes.io/last-applied-configuration: x}}, data: {k: v}, status: {s: 1}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: d, labels: {a: b}}, data: {k: v}}`,
		},
		"generated selector of a Job goes": {
			`{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {selector: {matchLabels: {batch.kubernetes.io/controller-uid: u}}, template: {metadata: {labels: {app: x, controller-uid: u, job-name: j}}}}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {metadata: {labels: {app: x}}}}}`,
		},
		"selector that the user wrote stays": {
			`{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {manualSelector: true, selector: {matchLabels: {a: b}}}}`,
			`{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {manualSelector: true, selector: {matchLabels: {a: b}}}}`,
		},
		"allocated address of a Service goes": {
			`{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4], ports: [{port: 80}]}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}`,
		},
		"headless stays headless": {
			`{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: None, clusterIPs: [None]}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {clusterIP: None, clusterIPs: [None]}}`,
		},
		"token volume of a Pod goes": {
			`{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {volumes: [{name: data}, {name: kube-api-access-x}], containers: [{name: c, volumeMounts: [{name: kube-api-access-x}]}]}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {volumes: [{name: data}], containers: [{name: c}]}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(parse(t, tc.want).Object, prune(parse(t, tc.template)).Object); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReviseAndRetain(t *testing.T) {
	object :=
		parse(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, labels: "+
			"{resourcetemplate.karmada.io/retain-replicas: \"true\"}}, spec: {replicas: 3}}")
	revised, err := revise(object, 1)
	if err != nil {
		t.Fatal(err)
	}
	if n, _, _ := unstructured.NestedInt64(revised.Object, "spec", "replicas"); n != 1 {
		t.Errorf("got %d replicas", n)
	}
	observed := object.DeepCopy()
	if err := unstructured.SetNestedField(observed.Object, int64(7), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	retained := retain(revised, observed)
	if n, _, _ := unstructured.NestedInt64(retained.Object, "spec", "replicas"); n != 7 {
		t.Errorf("replicas belong to the member, got %d", n)
	}
	if n, _, _ := unstructured.NestedInt64(revised.Object, "spec", "replicas"); n != 1 {
		t.Error("the argument was changed")
	}
}

func TestSplitCompletions(t *testing.T) {
	job := parse(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 3, completions: 10}}")
	divided := []core.Target{{Cluster: "a", Replicas: 2}, {Cluster: "b", Replicas: 1}}
	if diff := cmp.Diff(map[string]int64{"a": 7, "b": 3}, SplitCompletions(job, divided, 3)); diff != "" {
		t.Error(diff)
	}
	duplicated := []core.Target{{Cluster: "a", Replicas: 3}, {Cluster: "b", Replicas: 3}}
	if got := SplitCompletions(job, duplicated, 3); got != nil {
		t.Errorf("every cluster has all completions, got %v", got)
	}
}

func TestAggregateDeployment(t *testing.T) {
	template :=
		parse(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, generation: 3}, spec: {replicas: 2}, "+
			"status: {observedGeneration: 2, replicas: 9}}")
	of := func(cluster string, templateGeneration, observed int64) Item {
		return Item{Cluster: cluster, Status: map[string]any{
			"generation": int64(5), "observedGeneration": observed, "resourceTemplateGeneration": templateGeneration,
			"replicas": int64(1), "readyReplicas": float64(1),
		}}
	}
	tests := map[string]struct {
		items    []Item
		observed int64
		replicas int64
	}{
		"all members are up to date":          {[]Item{of("a", 3, 5), of("b", 3, 5)}, 3, 2},
		"a member has the older template":     {[]Item{of("a", 3, 5), of("b", 2, 5)}, 2, 2},
		"a member's controller hasn't looked": {[]Item{of("a", 3, 5), of("b", 3, 4)}, 2, 2},
		"a member is missing":                 {[]Item{of("a", 3, 5)}, 2, 1},
	}
	for name, tc := range tests {
		status, ok := aggregate(template, tc.items, 2)
		if !ok || status["observedGeneration"] != tc.observed || status["replicas"] != tc.replicas ||
			status["readyReplicas"] != tc.replicas {
			t.Errorf("%s: got %v", name, status)
		}
	}
	if status := section(template, "status"); status["replicas"] != int64(9) {
		t.Error("the template that was passed in changed")
	}
}

func TestAggregateJob(t *testing.T) {
	template := parse(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: x}}")
	done := map[string]any{
		"succeeded": int64(2), "startTime": "2024-01-01T00:00:00Z", "completionTime": "2024-01-01T00:01:00Z",
		"conditions": []any{map[string]any{"type": "Complete", "status": "True"}},
	}
	running := map[string]any{"active": int64(1), "startTime": "2024-01-01T00:00:02Z"}
	status, _ := aggregate(template, []Item{{"a", done}, {"b", running}}, 2)
	if status["completionTime"] != nil || status["startTime"] != "2024-01-01T00:00:00Z" ||
		status["active"] != int64(1) {
		t.Errorf("one is running: %v", status)
	}
	status, _ = aggregate(template, []Item{{"a", done}, {"b", done}}, 2)
	if !fields(status).condition("Complete") || status["succeeded"] != int64(4) {
		t.Errorf("both are done: %v", status)
	}
}

func TestAggregateService(t *testing.T) {
	template := parse(t, "{apiVersion: v1, kind: Service, metadata: {name: x}}")
	status, _ := aggregate(template, []Item{
		{"m1", map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": "1.2.3.4"}}}}},
		{"m2", map[string]any{"loadBalancer": map[string]any{}}},
	}, 2)
	want := map[string]any{
		"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": "1.2.3.4", "hostname": "m1"}}},
	}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Error(diff)
	}
}

func TestHealth(t *testing.T) {
	tests := map[string]struct {
		object string
		want   Health
	}{
		"Deployment ready": {
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, generation: 1}, spec: {replicas: 2}, " +
				"status: {observedGeneration: 1, updatedReplicas: 2, availableReplicas: 2}}", Healthy,
		},
		"Deployment not observed": {
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, generation: 2}, spec: {replicas: 2}, " +
				"status: {observedGeneration: 1, updatedReplicas: 2, availableReplicas: 2}}", Unhealthy,
		},
		"Deployment unavailable": {
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, generation: 1}, spec: {replicas: 2}, " +
				"status: {observedGeneration: 1, updatedReplicas: 2, availableReplicas: 1}}", Unhealthy,
		},
		"Deployment of one, whose old pod is what is available": {
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, generation: 2}, spec: {replicas: 1}, " +
				"status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, availableReplicas: 1, " +
				"unavailableReplicas: 1}}", Unhealthy,
		},
		"Deployment of one, updated": {
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, generation: 2}, spec: {replicas: 1}, " +
				"status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, availableReplicas: 1}}", Healthy,
		},
		"Deployment of none": {
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, generation: 1}, spec: {replicas: 0}, " +
				"status: {observedGeneration: 1}}", Healthy,
		},
		"Pod running": {
			"{apiVersion: v1, kind: Pod, metadata: {name: x}, status: {phase: Running, conditions: [{type: Ready, " +
				"status: \"True\"}]}}", Healthy,
		},
		"Pod pending": {
			"{apiVersion: v1, kind: Pod, metadata: {name: x}, status: {phase: Pending}}", Unhealthy,
		},
		"Service": {
			"{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {type: ClusterIP}, status: {loadBalancer: {}}}",
			Healthy,
		},
		"Service that waits": {
			"{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {type: LoadBalancer}, status: " +
				"{loadBalancer: {}}}", Unhealthy,
		},
		"ConfigMap": {
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}", Unknown,
		},
	}
	for name, tc := range tests {
		if got := healthOf(parse(t, tc.object)); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}
