package quota

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// amounts parses "cpu=1 memory=2Gi".
func amounts(text string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, item := range strings.Fields(text) {
		name, value, _ := strings.Cut(item, "=")
		list[corev1.ResourceName(name)] = resource.MustParse(value)
	}
	return list
}

func key(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func TestUsage(t *testing.T) {
	workload := workv1alpha2.ResourceBindingSpec{
		ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: amounts("cpu=500m memory=1Gi")},
	}
	components := workv1alpha2.ResourceBindingSpec{Components: []workv1alpha2.Component{
		{
			Name: "leader", Replicas: 1, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
				ResourceRequest: amounts("cpu=2"),
			},
		},
		{
			Name: "worker", Replicas: 4, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{
				ResourceRequest: amounts("cpu=1"),
			},
		},
	}}
	tests := map[string]struct {
		spec     workv1alpha2.ResourceBindingSpec
		clusters []workv1alpha2.TargetCluster
		want     string
	}{
		"nowhere": {workload, nil, ""},
		"divided": {
			workload, []workv1alpha2.TargetCluster{{Name: "a", Replicas: 3}, {Name: "b", Replicas: 1}},
			"cpu=2 memory=4Gi pods=4",
		},
		"without requests": {
			workv1alpha2.ResourceBindingSpec{}, []workv1alpha2.TargetCluster{{Name: "a", Replicas: 3}}, "pods=3",
		},
		"no workload":     {workv1alpha2.ResourceBindingSpec{}, []workv1alpha2.TargetCluster{{Name: "a"}}, ""},
		"components, all": {components, []workv1alpha2.TargetCluster{{Name: "a"}, {Name: "b"}}, "cpu=12 pods=10"},
		"components, as given": {
			components, []workv1alpha2.TargetCluster{
				{Name: "a", Components: []workv1alpha2.TargetComponent{{Name: "worker", Replicas: 2}}},
			}, "cpu=4 pods=3",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Usage(&tc.spec, tc.clusters); !same(got, amounts(tc.want)) {
				t.Errorf("got %v, want %s", got, tc.want)
			}
		})
	}
}

func TestRequested(t *testing.T) {
	for limited, want := range map[corev1.ResourceName]corev1.ResourceName{
		"cpu": "cpu", "requests.cpu": "cpu", "requests.nvidia.com/gpu": "nvidia.com/gpu", "pods": "pods",
		"limits.cpu": "", "count/deployments.apps": "", "services": "", "requests.storage": "",
		"gold.storageclass.storage.k8s.io/requests.storage": "",
	} {
		if got, ok := Requested(limited); got != want || ok != (want != "") {
			t.Errorf("%s: got %q, %v", limited, got, ok)
		}
	}
}

func TestAdmit(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	used := map[types.NamespacedName]corev1.ResourceList{
		key("a"): amounts("cpu=4 pods=4"), key("b"): amounts("cpu=2 pods=2"),
	}
	tests := map[string]struct {
		hard, wanted string
		want         string
	}{
		"fits":                         {"cpu=10", "cpu=8", ""},
		"one too many":                 {"cpu=10", "cpu=9", "requests"},
		"named as request":             {"requests.cpu=10", "cpu=9", "requests.cpu: needs 9, others use 2 of 10"},
		"pods":                         {"pods=5", "cpu=1 pods=5", "pods: needs 5, others use 2 of 5"},
		"over the limit, but less":     {"cpu=3", "cpu=3 pods=3", ""},
		"over the limit, and the same": {"cpu=3", "cpu=4 pods=4", ""},
		"of no concern":                {"limits.cpu=0 services=0", "cpu=100", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var reservations Reservations
			err := reservations.Admit([]Limit{{Name: "shop/quota", Hard: amounts(tc.hard)}}, used, key("a"),
				amounts(tc.wanted), now)
			if (err != nil) != (tc.want != "") {
				t.Fatalf("got %v", err)
			}
			if err != nil && tc.want != "requests" && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestPromisesCount: a thousand decisions at a time, none of which the cache shows, take ten places.
func TestPromisesCount(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	used := map[types.NamespacedName]corev1.ResourceList{}
	for i := range 1000 {
		used[key(string(rune('a'+i%26))+strings.Repeat("x", i/26))] = nil
	}
	var reservations Reservations
	var admitted atomic.Int32
	var group sync.WaitGroup
	for k := range used {
		group.Go(func() {
			if reservations.Admit([]Limit{{Hard: amounts("cpu=10")}}, used, k, amounts("cpu=1"), now) == nil {
				admitted.Add(1)
			}
		})
	}
	group.Wait()
	if admitted.Load() != 10 {
		t.Errorf("%d were admitted", admitted.Load())
	}
	if err := reservations.Admit([]Limit{{Hard: amounts("cpu=10")}}, used, key("late"), amounts("cpu=1"),
		now.Add(time.Minute)); err != nil {
		t.Errorf("promises that were not kept in a minute end: %v", err)
	}
}

func TestPromiseEndsWhenTheCacheShowsIt(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	var reservations Reservations
	limits := []Limit{{Hard: amounts("cpu=10")}}
	admit := func(a, b, name, wanted string) error {
		return reservations.Admit(limits,
			map[types.NamespacedName]corev1.ResourceList{key("a"): amounts(a), key("b"): amounts(b)}, key(name),
			amounts(wanted), now)
	}
	if admit("", "", "a", "cpu=10") != nil || admit("", "", "b", "cpu=1") == nil {
		t.Fatal("the promise counts")
	}
	if admit("cpu=10", "", "b", "cpu=1") == nil || admit("cpu=5", "", "b", "cpu=1") != nil {
		t.Error("once it was seen, only what is known counts")
	}
}
