package controllers

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

func fleetOf(names ...string) core.Snapshot {
	var clusters []core.Cluster
	for _, name := range names {
		clusters = append(clusters, core.Cluster{
			Name: name, APIs: core.NewAPIs(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}),
			Room: &core.Room{Free: core.Resources{Pods: 100}},
		})
	}
	return core.NewSnapshot(clusters)
}

// placedBinding is divided by room over two clusters, and nothing has changed since.
func placedBinding(t *testing.T) *workv1alpha2.ResourceBinding {
	t.Helper()
	b := &workv1alpha2.ResourceBinding{}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	b.Spec.Replicas = 4
	b.Spec.Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided,
		WeightPreference: &policyv1alpha1.ClusterPreferences{
			DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas,
		},
	}}
	b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}, {Name: "m2", Replicas: 2}}
	text, err := json.Marshal(b.Spec.Placement)
	if err != nil {
		t.Fatal(err)
	}
	bindings.SetAnnotation(b, policyv1alpha1.AppliedPlacementAnnotation, string(text))
	now := metav1.Now()
	b.Status.LastScheduledTime = &now
	return b
}

func TestNeedsDecision(t *testing.T) {
	tests := map[string]struct {
		change func(*workv1alpha2.ResourceBinding)
		fleet  core.Snapshot
		want   bool
	}{
		"nothing changed":  {nil, fleetOf("m1", "m2"), false},
		"a cluster joined": {nil, fleetOf("m1", "m2", "m3"), false},
		"a cluster left":   {nil, fleetOf("m1"), true},
		"other replicas":   {func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 5 }, fleetOf("m1", "m2"), true},
		"other placement": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{}
		}, fleetOf("m1", "m2"), true},
		"duplicated": {
			func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement.ReplicaScheduling = nil }, fleetOf("m1", "m2"),
			true,
		},
		"asked for": {func(b *workv1alpha2.ResourceBinding) {
			b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: time.Now().Add(time.Hour)}
		}, fleetOf("m1", "m2"), true},
		"asked for long ago": {
			func(b *workv1alpha2.ResourceBinding) { b.Spec.RescheduleTriggeredAt = &metav1.Time{} },
			fleetOf("m1", "m2"), false,
		},
		"no replicas to divide": {
			func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 0 }, fleetOf("m1", "m2"), true,
		},
	}
	for name, tc := range tests {
		b := placedBinding(t)
		if tc.change != nil {
			tc.change(b)
		}
		if got := karmada.NeedsDecision(b, tc.fleet); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestDecideReportsWhatCannotBeDone(t *testing.T) {
	decide := func(b bindings.Binding, fleet core.Snapshot) outcome {
		result, err := decideBy(b, func(translated core.Binding) (core.Decision, error) {
			return core.Decide(fleet, translated), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	b := placedBinding(t)
	b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"-": ""}},
	}
	got := decide(b, fleetOf("m1", "m2"))
	if got.reason != workv1alpha2.ReasonSchedulerError ||
		!strings.Contains(got.message, "spec.placement.clusterAffinity.labelSelector: ") || len(got.clusters) != 2 {
		t.Errorf("got %+v", got)
	}
	b = placedBinding(t)
	b.Spec.Replicas = 1000
	if got := decide(b, fleetOf("m1", "m2")); got.reason != workv1alpha2.ReasonUnschedulable || len(got.clusters) != 2 {
		t.Errorf("a lack of room keeps what is placed: %+v", got)
	}
	b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m9"}}
	if got := decide(b, fleetOf("m1", "m2")); got.reason != workv1alpha2.ReasonNoClusterFit || len(got.clusters) != 0 {
		t.Errorf("no cluster that fits withdraws the object: %+v", got)
	}
}

// A decision and its reasons are written together, for the generation that the API server makes of it; the same
// decision is not written again.
func TestDecisionsAreWrittenOnce(t *testing.T) {
	now := time.Unix(100, 0)
	first := outcome{
		clusters: []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 4}}, term: "west",
		reason: workv1alpha2.ReasonSuccess, message: "placed on m1",
		report: &workv1alpha2.PlacementDecision{Strategy: "DynamicWeight"},
	}
	lack := first
	lack.reason, lack.message = workv1alpha2.ReasonUnschedulable, "no room"
	created, moved := &workv1alpha2.ResourceBinding{}, placedBinding(t)
	created.Spec.Placement = &policyv1alpha1.Placement{}
	moved.Generation = 7
	for name, test := range map[string]struct {
		binding    *workv1alpha2.ResourceBinding
		generation int64
	}{"created": {created, 1}, "moved": {moved, 8}} {
		b := test.binding
		if changed, isNew, err := enter(b, first, now); !changed || !isNew || err != nil {
			t.Fatalf("%s: changed %v, new %v: %v", name, changed, isNew, err)
		}
		b.Generation = test.generation
		decided, found := karmada.DecidedOf(b)
		if !found || decided.Generation != test.generation || !decided.Time.Time.Equal(now) ||
			b.Spec.Clusters[0].Replicas != 4 {
			t.Errorf("%s: %v, %+v", name, found, decided)
		}
		if changed, isNew, err := enter(b, first, now.Add(time.Hour)); changed || isNew || err != nil {
			t.Errorf("%s: written again: %v, %v, %v", name, changed, isNew, err)
		}
		changed, isNew, err := enter(b, lack, now.Add(time.Hour))
		if decided, _ := karmada.DecidedOf(b); !changed || !isNew || err != nil ||
			decided.Generation != test.generation || !decided.Time.Time.Equal(now.Add(time.Hour)) {
			t.Errorf("%s: %v, %v, %v, %+v", name, changed, isNew, err, decided)
		}
	}
}

// Who asks for a decision from scratch is answered by its time, even if it is the same as before.
func TestDecisionsThatWereAskedForHaveANewTime(t *testing.T) {
	b := placedBinding(t)
	decision := outcome{clusters: b.Spec.Clusters, reason: workv1alpha2.ReasonSuccess, message: "placed"}
	if _, _, err := enter(b, decision, time.Unix(100, 0)); err != nil {
		t.Fatal(err)
	}
	b.Spec.RescheduleTriggeredAt = &metav1.Time{Time: time.Unix(200, 0)}
	if changed, isNew, err := enter(b, decision, time.Unix(300, 0)); !changed || isNew || err != nil {
		t.Error(changed, isNew, err)
	}
	if translated, err := karmada.Translate(b); err != nil || translated.Fresh {
		t.Errorf("it is asked for once more, although the status is all that is missing: %v", err)
	}
}
