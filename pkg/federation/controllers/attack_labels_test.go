package controllers

import (
	"maps"
	"testing"

	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// TestAttackPreservedLabels plays an application team that gives a copy, by what failover is to preserve of its status,
// labels that are the fleet's own.
func TestAttackPreservedLabels(t *testing.T) {
	work := &workv1alpha1.Work{}
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{}}
	work.Spec.Workload.Manifests[0].Raw =
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"work.karmada.io/permanent-id":"1"}}}`)
	d := departures{[]workv1alpha2.GracefulEvictionTask{{FromCluster: "m1", PreservedLabelState: map[string]string{
		"work.karmada.io/permanent-id": "2", "karmada.io/managed": "x", "federation.trellis.garden/bindable": "true",
		"example.com/epoch": "7",
	}}}}
	if err := d.preserve(work, nil, "m2"); err != nil {
		t.Fatal(err)
	}
	object, err := decodeManifest(work, 0)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{
		"work.karmada.io/permanent-id": "1", "example.com/epoch": "7",
	}; !maps.Equal(object.GetLabels(), want) {
		t.Errorf("labels are %v, want %v", object.GetLabels(), want)
	}
}
