package fleet

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// TestAttackMemoryOfFleets plays the owner of a fleet who would have the memory of the seed's node by a setting: what
// is more than the usual is requested of the seed, the limit is at most twice that, and no fleet may ask for a whole
// node.
func TestAttackMemoryOfFleets(t *testing.T) {
	const head = "apiVersion: federation.extensions.trellis.garden/v1alpha1\nkind: FleetConfig\n"
	for memory, want := range map[string]struct{ request, limit string }{
		"":              {"48Mi", "4Gi"},
		"memory: 64Mi":  {"48Mi", "512Mi"},
		"memory: 1Gi":   {"1Gi", "4Gi"},
		"memory: 8Gi":   {"8Gi", "16Gi"},
		"memory: 8.1Gi": {},
		"memory: 1Ei":   {},
	} {
		config, err := ParseConfig([]byte(head + memory))
		if want.limit == "" {
			if err == nil {
				t.Errorf("%q is allowed", memory)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%q: %v", memory, err)
		}
		resources := container("image", config).Resources
		for what, amounts := range map[string][2]resource.Quantity{
			"request": {*resources.Requests.Memory(), resource.MustParse(want.request)},
			"limit":   {*resources.Limits.Memory(), resource.MustParse(want.limit)},
		} {
			if amounts[0].Cmp(amounts[1]) != 0 {
				t.Errorf("%q: %s %s, want %s", memory, what, &amounts[0], &amounts[1])
			}
		}
	}
}
