package capacity

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

func TestCheck(t *testing.T) {
	list := func(name, amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(amount)}
	}
	for name, tc := range map[string]struct {
		summary *clusterv1alpha1.ResourceSummary
		err     string
	}{
		"none":  {nil, ""},
		"empty": {&clusterv1alpha1.ResourceSummary{}, ""},
		"a large cluster": {
			&clusterv1alpha1.ResourceSummary{Allocatable: list("cpu", "1000000"), Available: list("memory", "16Pi")},
			"",
		},
		"negative": {
			&clusterv1alpha1.ResourceSummary{Allocatable: list("cpu", "-1")}, "allocatable claims -1 of cpu",
		},
		"more than numbers": {&clusterv1alpha1.ResourceSummary{Allocated: list("memory", "1e30")}, "allocated claims"},
		"a node's most": {
			&clusterv1alpha1.ResourceSummary{
				NodeClasses: []clusterv1alpha1.NodeClass{{Count: 1, Free: list("cpu", "16777217")}},
			}, "nodeClasses[0].free claims",
		},
		"negative count": {
			&clusterv1alpha1.ResourceSummary{NodeClasses: []clusterv1alpha1.NodeClass{{Count: -1}}}, "claims -1 nodes",
		},
	} {
		err := Check(tc.summary)
		if (tc.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: got %v, want %q", name, err, tc.err)
		}
	}
}

// What passes can be multiplied by the number of nodes and added up without an overflow.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"allocatable":{"cpu":"4"},"nodeClasses":[{"count":3,"free":{"memory":"1Gi"}}]}`))
	f.Add([]byte(`{"allocatable":{"cpu":"9e18"},"nodeClasses":[{"count":-3,"free":{"memory":"1e99"}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		summary := &clusterv1alpha1.ResourceSummary{}
		if json.Unmarshal(text, summary) != nil || Check(summary) != nil {
			return
		}
		for name, quantity := range summary.Allocatable {
			if value := quantity.MilliValue(); name == corev1.ResourceCPU && (value < 0 || value > 1<<45) {
				t.Errorf("%s of %s passed", quantity.String(), name)
			}
			if value := quantity.Value(); value < 0 || value > 1<<58 {
				t.Errorf("%s of %s passed", quantity.String(), name)
			}
		}
	})
}
