package garden

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// TestListsAreMergedByItem patches one pool of several workers in every way that there is, and removes one.
func TestListsAreMergedByItem(t *testing.T) {
	create(t, newProfile("merged"))
	namespace := newProject(t, "merged")
	const head = `{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot",`
	for i, test := range []struct {
		name  string
		patch client.Patch
		want  []string // names of pools
		first int32    // maximum of the first pool
	}{
		{
			"strategic merge", client.RawPatch(types.StrategicMergePatchType,
				[]byte(`{"spec":{"provider":{"workers":[{"name":"one","maximum":5}]}}}`)), []string{
				"one", "two", "three",
			}, 5,
		},
		{
			"strategic merge removes", client.RawPatch(types.StrategicMergePatchType,
				[]byte(`{"spec":{"provider":{"workers":[{"name":"two","$patch":"delete"}]}}}`)), []string{
				"one", "three",
			}, 2,
		},
		{
			"merge replaces", client.RawPatch(types.MergePatchType,
				[]byte(`{"spec":{"provider":{"workers":[{"name":"one","minimum":1,"maximum":5,"machine":{"type":"local"},"zones":["0"]}]}}}`)), []string{
				"one",
			}, 5,
		},
		// The name in the body is that of the shoot, which is the case's number.
		{
			"apply", client.RawPatch(types.ApplyPatchType,
				[]byte(head+
					`"metadata":{"name":"merged3"},"spec":{"provider":{"workers":[{"name":"one","maximum":5}]}}}`)),
			[]string{
				"one", "two", "three",
			}, 5,
		},
		{
			"kubectl apply changes", lastApplied(t, []string{"one", "two", "three"}, []string{"one", "two", "three"},
				5), []string{
				"one", "two", "three",
			}, 5,
		},
		{
			"kubectl apply removes", lastApplied(t, []string{"one", "two", "three"}, []string{"one", "three"}, 2),
			[]string{"one", "three"}, 2,
		},
		{
			"kubectl apply keeps others' items", lastApplied(t, []string{"one"}, []string{"one"}, 5),
			[]string{"one", "two", "three"}, 5,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			shoot := newShoot(namespace, fmt.Sprintf("merged%d", i), "merged", withPools("one", "two", "three"))
			create(t, shoot)
			options := []client.PatchOption{client.FieldOwner("test")}
			if test.patch.Type() == types.ApplyPatchType {
				options = append(options, client.ForceOwnership)
			}
			if err := env.Client.Patch(context.Background(), shoot, test.patch, options...); err != nil {
				t.Fatal(err)
			}
			requirePools(t, shoot, test.want, test.first)
		})
	}
	t.Run("what was applied is removed", func(t *testing.T) { testAppliedItemIsRemoved(t, namespace) })
}

// testAppliedItemIsRemoved applies a pool and then leaves it out: the server removes what its manager no longer wants.
func testAppliedItemIsRemoved(t *testing.T, namespace string) {
	shoot := newShoot(namespace, "removed", "merged", withPools("one"))
	create(t, shoot)
	apply := func(workers string) {
		t.Helper()
		body :=
			`{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Shoot","metadata":{"name":"removed"},"spec":{"provider":{"workers":[` + workers + `]}}}`
		if err := env.Client.Patch(context.Background(), shoot, client.RawPatch(types.ApplyPatchType, []byte(body)),
			client.FieldOwner("test")); err != nil {
			t.Fatal(err)
		}
	}
	apply(`{"name":"two","minimum":1,"maximum":3,"machine":{"type":"local"},"zones":["0"]}`)
	requirePools(t, shoot, []string{"one", "two"}, 2)
	apply("")
	requirePools(t, shoot, []string{"one"}, 2)
}

func withPools(names ...string) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) {
		pool := s.Spec.Provider.Workers[0]
		s.Spec.Provider.Workers = nil
		for _, name := range names {
			pool.Name = name
			s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, pool)
		}
	}
}

// lastApplied is the patch that kubectl apply makes when pools were applied before and others are now, while the object
// has pools one, two and three. The first one's maximum changes.
func lastApplied(t *testing.T, before, now []string, maximum int32) client.Patch {
	t.Helper()
	encode := func(pools []string, maximum int32) []byte {
		shoot := newShoot("", "", "", withPools(pools...))
		shoot.Spec.Provider.Workers[0].Maximum = maximum
		encoded, err := json.Marshal(map[string]any{
			"spec": map[string]any{"provider": map[string]any{"workers": shoot.Spec.Provider.Workers}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	schema, err := strategicpatch.NewPatchMetaFromStruct(&gardencorev1beta1.Shoot{})
	if err != nil {
		t.Fatal(err)
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(encode(before, 2), encode(now, maximum),
		encode([]string{"one", "two", "three"}, 2), schema, true)
	if err != nil {
		t.Fatal(err)
	}
	return client.RawPatch(types.StrategicMergePatchType, patch)
}

// requirePools compares the pools of a shoot, in any order, and the maximum of pool one.
func requirePools(t *testing.T, shoot *gardencorev1beta1.Shoot, want []string, maximum int32) {
	t.Helper()
	var got []string
	for _, worker := range shoot.Spec.Provider.Workers {
		got = append(got, worker.Name)
		if worker.Name == "one" && worker.Maximum != maximum {
			t.Errorf("maximum of pool one = %d, want %d", worker.Maximum, maximum)
		}
	}
	slices.Sort(got)
	if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
		t.Errorf("pools = %v, want %v", got, want)
	}
}
