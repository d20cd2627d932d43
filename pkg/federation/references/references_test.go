package references

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

func TestInherit(t *testing.T) {
	overwrite := &workv1alpha2.ResourceBindingSpec{
		ConflictResolution: policyv1alpha1.ConflictOverwrite,
		Clusters:           []workv1alpha2.TargetCluster{{Name: "m1"}, {Name: "m2"}},
	}
	preserve := &workv1alpha2.ResourceBindingSpec{
		PreserveResourcesOnDeletion: new(true), Clusters: []workv1alpha2.TargetCluster{{Name: "m1"}},
	}
	suspended := &workv1alpha2.ResourceBindingSpec{
		Clusters:   []workv1alpha2.TargetCluster{{Name: "m1"}, {Name: "m3"}},
		Suspension: &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: new(true)}},
	}
	tests := map[string]struct {
		referrers []*workv1alpha2.ResourceBindingSpec
		conflict  policyv1alpha1.ConflictResolution
		preserve  bool
		suspended []string
	}{
		"nobody says anything": {
			[]*workv1alpha2.ResourceBindingSpec{{}}, policyv1alpha1.ConflictAbort, false, nil,
		},
		"one overwrites, one preserves": {
			[]*workv1alpha2.ResourceBindingSpec{overwrite, preserve}, policyv1alpha1.ConflictOverwrite, true, nil,
		},
		"suspended where all agree": {
			[]*workv1alpha2.ResourceBindingSpec{suspended, preserve}, policyv1alpha1.ConflictAbort, true,
			[]string{"m3"},
		},
		"suspended everywhere, by a lone": {
			[]*workv1alpha2.ResourceBindingSpec{suspended}, policyv1alpha1.ConflictAbort, false, []string{"m1", "m3"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := &workv1alpha2.ResourceBindingSpec{PreserveResourcesOnDeletion: new(true)}
			Inherit(spec, tc.referrers)
			if spec.ConflictResolution != tc.conflict || (spec.PreserveResourcesOnDeletion != nil) != tc.preserve {
				t.Errorf("got %s, preserve %v", spec.ConflictResolution, spec.PreserveResourcesOnDeletion)
			}
			var got []string
			if spec.Suspension != nil {
				got = spec.Suspension.DispatchingOnClusters.ClusterNames
			}
			if !reflect.DeepEqual(got, tc.suspended) {
				t.Errorf("suspended %v, want %v", got, tc.suspended)
			}
		})
	}
}

func TestCopiesThatAreEvictedKeepTheirDependencies(t *testing.T) {
	spec := &workv1alpha2.ResourceBindingSpec{
		Clusters:              []workv1alpha2.TargetCluster{{Name: "m2", Replicas: 3}},
		GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1"}},
	}
	got := SnapshotOf(types.NamespacedName{Namespace: "shop", Name: "a"}, spec)
	if len(got.Clusters) != 2 || got.Clusters[0].Name != "m1" || got.Clusters[1].Replicas != 3 {
		t.Errorf("%+v", got)
	}
	if SnapshotOf(types.NamespacedName{}, &workv1alpha2.ResourceBindingSpec{}) != nil {
		t.Error("what is nowhere requires nothing")
	}
}

func TestAnnotation(t *testing.T) {
	tests := map[string]struct {
		text string
		want int
		bad  bool
	}{
		"absent": {"", 0, false},
		"by labels": {
			`[{"apiVersion":"v1","kind":"Service","labelSelector":{"matchLabels":{"app":"shop"}}}]`, 1, false,
		},
		"by name":           {`[{"apiVersion":"v1","kind":"Service","name":"shop","namespace":"shop"}]`, 1, false},
		"another namespace": {`[{"apiVersion":"v1","kind":"Secret","name":"root","namespace":"kube-system"}]`, 0, true},
		"no list":           {`{}`, 0, true},
		"no kind":           {`[{"apiVersion":"v1","name":"shop"}]`, 0, true},
		"neither":           {`[{"apiVersion":"v1","kind":"Service"}]`, 0, true},
		"bad selector": {
			`[{"apiVersion":"v1","kind":"Service","labelSelector":{"matchLabels":{"-":"?"}}}]`, 0, true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{}}
			object.SetNamespace("shop")
			if tc.text != "" {
				object.SetAnnotations(map[string]string{Annotation: tc.text})
			}
			got, err := understand(nil, object)
			if len(got) != tc.want || (err != nil) != tc.bad {
				t.Errorf("got %v, %v", got, err)
			}
			for _, r := range got {
				if r.Namespace != "shop" {
					t.Errorf("namespace %q", r.Namespace)
				}
			}
		})
	}
}

func TestObjectsOfNamespacesTakeAlongThoseOfTheirOwn(t *testing.T) {
	reference := func(namespace string) Reference {
		return Reference{
			GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
			NamespacedName:   types.NamespacedName{Namespace: namespace, Name: "a"},
		}
	}
	all := []Reference{reference("kube-system"), reference("shop"), reference("")}
	got, err := within("shop", all)
	if len(got) != 1 || got[0].Namespace != "shop" || !errors.Is(err, ErrElsewhere) ||
		!strings.Contains(err.Error(), `Secret "a" of namespace "kube-system", Secret "a" of namespace ""`) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err = within("shop", all[1:2]); len(got) != 1 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err = within("", all); len(got) != 3 || err != nil {
		t.Errorf("cluster-wide: %v, %v", got, err)
	}
}
