package landscape

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestObjectHealth(t *testing.T) {
	tests := []struct {
		name    string
		kind    string
		status  map[string]any
		healthy bool
		detail  string
	}{
		{
			name: "shoot that was created", kind: "Shoot", healthy: true, detail: "Create Succeeded, 100%",
			status: map[string]any{
				"lastOperation": map[string]any{"type": "Create", "state": "Succeeded", "progress": int64(100)},
				"conditions":    []any{map[string]any{"type": "APIServerAvailable", "status": "True"}},
			},
		},
		{
			name: "shoot in the making", kind: "Shoot", detail: "Create Processing, 43%",
			status: map[string]any{
				"lastOperation": map[string]any{"type": "Create", "state": "Processing", "progress": int64(43)},
			},
		},
		{
			name: "shoot whose components start", kind: "Shoot",
			detail: "Create Succeeded, 100%; SystemComponentsHealthy: not yet; EveryNodeReady: one is not",
			status: map[string]any{
				"lastOperation": map[string]any{"type": "Create", "state": "Succeeded", "progress": int64(100)},
				"conditions": []any{
					map[string]any{"type": "SystemComponentsHealthy", "status": "Progressing", "message": "not yet"},
					map[string]any{"type": "EveryNodeReady", "status": "False", "message": "one is not"},
				},
			},
		},
		{name: "shoot that nobody has seen", kind: "Shoot", detail: "not yet reconciled"},
		{
			name: "seed without gardenlet", kind: "Seed", detail: "GardenletReady: no heartbeat",
			status: map[string]any{
				"conditions": []any{
					map[string]any{"type": "GardenletReady", "status": "Unknown", "message": "no heartbeat"},
				},
			},
		},
		{name: "seed", kind: "Seed", healthy: true, detail: "ready"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			object := &unstructured.Unstructured{
				Object: map[string]any{"kind": test.kind, "metadata": map[string]any{"name": "x"}},
			}
			if test.status != nil {
				object.Object["status"] = test.status
			}
			got := objectHealth(object)
			if got.healthy != test.healthy || got.detail != test.detail {
				t.Errorf("got healthy %v, %q; want %v, %q", got.healthy, got.detail, test.healthy, test.detail)
			}
		})
	}
}

func TestShootUnfinished(t *testing.T) {
	shoot := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"generation": int64(2)},
		"status": map[string]any{
			"observedGeneration": int64(1),
			"lastOperation":      map[string]any{"state": "Succeeded", "progress": int64(100)},
		},
	}}
	if shootUnfinished(shoot) == "" {
		t.Error("a shoot whose newest generation nobody has seen is finished")
	}
	shoot.Object["status"].(map[string]any)["observedGeneration"] = int64(2)
	if reason := shootUnfinished(shoot); reason != "" {
		t.Errorf("a finished shoot is not: %s", reason)
	}
	component := map[string]any{
		"type": "SystemComponentsHealthy", "status": "Progressing",
		"message": "APIService v1beta1.metrics.k8s.io: API is not available yet",
	}
	shoot.Object["status"].(map[string]any)["conditions"] = []any{
		map[string]any{"type": "EveryNodeReady", "status": "True"}, component,
	}
	if got, want := shootUnfinished(shoot),
		"SystemComponentsHealthy: APIService v1beta1.metrics.k8s.io: API is not available yet"; got != want {
		t.Errorf("a shoot whose system components start: got %q, want %q", got, want)
	}
	component["status"] = "True"
	if reason := shootUnfinished(shoot); reason != "" {
		t.Errorf("a healthy shoot is not finished: %s", reason)
	}
}

func TestMapMachineImages(t *testing.T) {
	profile := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"machineImages": []any{
		map[string]any{"name": "debian", "versions": []any{map[string]any{"version": "12.11.0"}}},
	}}}}
	if err := mapMachineImages(profile, "registry.test/machine:1"); err != nil {
		t.Fatal(err)
	}
	images, _, err := unstructured.NestedSlice(profile.Object, "spec", "providerConfig", "machineImages")
	if err != nil || len(images) != 1 {
		t.Fatalf("got %v, %v", images, err)
	}
	versions := images[0].(map[string]any)["versions"].([]any)
	if got := versions[0].(map[string]any); got["version"] != "12.11.0" || got["image"] != "registry.test/machine:1" {
		t.Errorf("got %v", got)
	}
}

// Where a part has several replicas, the status tells how many of them are ready.
func TestReplicasAreTold(t *testing.T) {
	for name, test := range map[string]struct {
		replicas, ready int64
		healthy         bool
		want            string
	}{
		"one":          {1, 1, true, "ready"},
		"all of three": {3, 3, true, "ready, 3 of 3 replicas"},
		"two of three": {3, 2, false, ", 2 of 3 replicas"},
	} {
		item := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "StatefulSet",
			"metadata": map[string]any{"namespace": "garden", "name": "etcd-main", "generation": int64(1)},
			"spec":     map[string]any{"replicas": test.replicas},
			"status": map[string]any{
				"observedGeneration": int64(1), "replicas": test.replicas, "readyReplicas": test.ready,
				"updatedReplicas": test.replicas,
			},
		}}
		line := workloadHealth(item)
		if line.part != "garden/etcd-main" || line.healthy != test.healthy || !strings.HasSuffix(line.detail, test.want) ||
			test.healthy && line.detail != test.want {
			t.Errorf("%s: got %+v", name, line)
		}
	}
}
