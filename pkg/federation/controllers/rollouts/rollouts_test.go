package rollouts

import (
	"bytes"
	"compress/gzip"
	"reflect"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
	"github.com/trellis-garden/trellis/pkg/federation/rollout"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	result := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &result.Object); err != nil {
		t.Fatal(err)
	}
	data, err := result.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := result.UnmarshalJSON(data); err != nil { // Numbers as they come from an API server.
		t.Fatal(err)
	}
	return result
}

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, uid: a, resourceVersion: "1", generation: 3, labels: {app: web}, managedFields: [{manager: kubectl}]}
spec: {replicas: 3, template: {spec: {containers: [{name: web, image: "web:1"}]}}}
status: {replicas: 3}
`

func TestRevisionIsAllButReplicas(t *testing.T) {
	b := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{Replicas: 3}}
	revision := func(change func(*unstructured.Unstructured)) string {
		changed := object(t, web)
		change(changed)
		result, err := revisionOf(t.Context(), interpreter.New(), b, changed)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	first := revision(func(*unstructured.Unstructured) {})
	tests := map[string]struct {
		change func(*unstructured.Unstructured)
		same   bool
	}{
		"replicas": {func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, int64(9), "spec", "replicas")
		}, true},
		"status":       {func(o *unstructured.Unstructured) { o.Object["status"] = map[string]any{} }, true},
		"a generation": {func(o *unstructured.Unstructured) { o.SetGeneration(4); o.SetResourceVersion("2") }, true},
		"what kubectl notes": {func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"})
		}, true},
		"a label": {func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"app": "other"}) }, false},
		"a field": {
			func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, true, "spec", "paused") },
			false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := revision(tc.change); (got == first) != tc.same {
				t.Errorf("revision %s after %s", got, first)
			}
		})
	}
}

func TestPackedObjectsHaveTheSameContent(t *testing.T) {
	data, err := pack(object(t, web))
	if err != nil {
		t.Fatal(err)
	}
	got, err := unpack(data)
	if err != nil {
		t.Fatal(err)
	}
	want := object(t, web)
	delete(want.Object, "status")
	want.Object["metadata"] = map[string]any{"name": "web", "namespace": "shop", "labels": map[string]any{"app": "web"}}
	if !apiequality.Semantic.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestUnpackingIsBounded(t *testing.T) {
	var bomb bytes.Buffer
	writer := gzip.NewWriter(&bomb)
	for range 16 {
		if _, err := writer.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(bomb.Bytes()); err == nil {
		t.Error("16 MiB are accepted")
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte{})
	if data, err := pack(&unstructured.Unstructured{
		Object: map[string]any{"kind": "A", "apiVersion": "v1"},
	}); err == nil {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := unpack(data)
		if err != nil {
			return
		}
		again, err := pack(got)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unpack(again); err != nil {
			t.Errorf("cannot be read again: %v", err)
		}
	})
}

func TestJudge(t *testing.T) {
	work := func(status metav1.ConditionStatus, reason string, observed int64,
		health workv1alpha1.ResourceHealth) *workv1alpha1.Work {
		w := &workv1alpha1.Work{}
		w.Generation, w.Annotations = 2, map[string]string{workv1alpha2.RevisionAnnotation: "r"}
		w.Status.Conditions = []metav1.Condition{{
			Type: workv1alpha1.ConditionApplied, Status: status, Reason: reason, Message: "why",
			ObservedGeneration: observed,
		}}
		if health != "" {
			w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Health: health}}
		}
		return w
	}
	leaving := work(metav1.ConditionTrue, "", 2, "Healthy")
	leaving.DeletionTimestamp = new(metav1.Now())
	tests := map[string]struct {
		work *workv1alpha1.Work
		want rollout.Cluster
	}{
		"none":          {nil, rollout.Cluster{}},
		"being removed": {leaving, rollout.Cluster{}},
		"healthy": {
			work(metav1.ConditionTrue, "", 2, "Healthy"), rollout.Cluster{Revision: "r", Applied: true, Healthy: true},
		},
		"no notion": {
			work(metav1.ConditionTrue, "", 2, "Unknown"), rollout.Cluster{Revision: "r", Applied: true, Healthy: true},
		},
		"unhealthy": {
			work(metav1.ConditionTrue, "", 2, "Unhealthy"),
			rollout.Cluster{Revision: "r", Applied: true, Problem: "not healthy"},
		},
		"about the old one": {work(metav1.ConditionTrue, "", 1, "Healthy"), rollout.Cluster{Revision: "r"}},
		"refused":           {work(metav1.ConditionFalse, "", 2, ""), rollout.Cluster{Revision: "r", Problem: "why"}},
		"not understood": {
			work(metav1.ConditionTrue, workv1alpha1.ReasonNotInterpreted, 2, "Unknown"),
			rollout.Cluster{Revision: "r", Applied: true, Problem: "why"},
		},
		"nothing known of it": {&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{workv1alpha2.RevisionAnnotation: "r"},
		}}, rollout.Cluster{Revision: "r"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got rollout.Cluster
			judge(&got, tc.work)
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
