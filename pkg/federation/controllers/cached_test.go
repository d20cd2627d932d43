package controllers

import (
	"encoding/json"
	"fmt"
	"testing"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// decoded gives an object as a watch does.
func decoded[T client.Object](t *testing.T, object, into T) T {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
	return into
}

func testBinding() *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", Labels: map[string]string{"a": "b"},
		Finalizers:  []string{"one", "two", "three"},
		Annotations: map[string]string{policyv1alpha1.AppliedPlacementAnnotation: `{"clusterAffinity":{}}`},
	}}
	b.Status.Conditions = []metav1.Condition{
		{Type: workv1alpha2.ConditionScheduled, Status: metav1.ConditionTrue, Reason: "Success", Message: "placed"},
	}
	b.Status.Decision = &workv1alpha2.PlacementDecision{
		Ranking:    "member-0 chosen\nmember-1\n",
		Rejections: []workv1alpha2.DecisionRejection{{Reason: "Tainted", Message: "tainted", Clusters: "x y z"}},
	}
	for i := range 5 {
		name := fmt.Sprintf("member-%d", i)
		b.Status.AggregatedStatus = append(b.Status.AggregatedStatus,
			workv1alpha2.AggregatedStatusItem{
				ClusterName: name, Status: &runtime.RawExtension{Raw: []byte(`{"replicas":1}`)},
			})
	}
	return b
}

func testWork() *workv1alpha1.Work {
	w := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "trellis-es-one", Name: "web-1", Annotations: map[string]string{"c": "d"},
		},
	}
	w.Spec.Workload.Manifests = []workv1alpha1.Manifest{
		{RawExtension: runtime.RawExtension{Raw: []byte(`{"kind":"Deployment"}`)}},
	}
	w.Status.Conditions = []metav1.Condition{
		{Type: workv1alpha1.ConditionApplied, Status: metav1.ConditionTrue, Reason: "AppliedSuccessful"},
	}
	w.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{
		{
			Identifier: workv1alpha1.ResourceIdentifier{
				Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespace: "shop",
				Name: "web",
			},
		},
	}
	return w
}

func TestCachesKeepAllButWhoManagesFields(t *testing.T) {
	for _, test := range []struct{ object, into client.Object }{
		{testBinding(), &workv1alpha2.ResourceBinding{}},
		{testWork(), &workv1alpha1.Work{}},
		{
			&policyv1alpha1.PropagationPolicy{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
			&policyv1alpha1.PropagationPolicy{},
		},
	} {
		wanted, err := json.Marshal(test.object)
		if err != nil {
			t.Fatal(err)
		}
		managed := test.object.DeepCopyObject().(client.Object)
		managed.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
		cached, err := compact(decoded(t, managed, test.into))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(cached); err != nil || string(got) != string(wanted) {
			t.Errorf("got  %s: %v\nwant %s", got, err, wanted)
		}
	}
}

func TestCachesKeepOnceWhatManyBindingsSay(t *testing.T) {
	var cached [2]*workv1alpha2.ResourceBinding
	for i := range cached {
		cached[i] = decoded(t, testBinding(), &workv1alpha2.ResourceBinding{})
		if _, err := compact(cached[i]); err != nil {
			t.Fatal(err)
		}
	}
	if items := cached[0].Status.AggregatedStatus; cap(items) != len(items) {
		t.Errorf("there is room for %d more clusters", cap(items)-len(items))
	}
	for name, texts := range map[string][2]string{
		"namespace": {cached[0].Namespace, cached[1].Namespace},
		"cluster": {
			cached[0].Status.AggregatedStatus[4].ClusterName, cached[1].Status.AggregatedStatus[4].ClusterName,
		},
		"rejection": {cached[0].Status.Decision.Rejections[0].Message, cached[1].Status.Decision.Rejections[0].Message},
		"placement": {
			cached[0].Annotations[policyv1alpha1.AppliedPlacementAnnotation],
			cached[1].Annotations[policyv1alpha1.AppliedPlacementAnnotation],
		},
	} {
		if unsafe.StringData(texts[0]) != unsafe.StringData(texts[1]) {
			t.Errorf("%s: %q is in memory twice", name, texts[0])
		}
	}
}

// The explanation of a decision is long: it is kept in an annotation only until the status has it.
func TestCachesKeepExplanationsOnce(t *testing.T) {
	b := testBinding()
	b.Spec.Placement = &policyv1alpha1.Placement{}
	report := &workv1alpha2.PlacementDecision{Ranking: "member-2 chosen\n"}
	karmada.SetDecided(b, karmada.Decided{Generation: 4, Reason: workv1alpha2.ReasonSuccess})
	if _, err := karmada.SetReport(b, report); err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []bool{true, false} {
		if _, err := compact(b); err != nil {
			t.Fatal(err)
		}
		if _, kept := b.Annotations[workv1alpha2.DecisionReportAnnotation]; kept != wanted {
			t.Errorf("kept: %v, want %v", kept, wanted)
		}
		karmada.Explain(b)
		if b.Status.Decision.Ranking != report.Ranking {
			t.Errorf("explained by %q", b.Status.Decision.Ranking)
		}
	}
}
