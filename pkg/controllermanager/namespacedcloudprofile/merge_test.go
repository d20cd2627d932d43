package namespacedcloudprofile

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

var later = metav1.NewTime(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))

func newParent() *gardencorev1beta1.CloudProfileSpec {
	return &gardencorev1beta1.CloudProfileSpec{
		Type:     "local",
		CABundle: new("A"),
		Kubernetes: gardencorev1beta1.KubernetesSettings{
			Versions: []gardencorev1beta1.ExpirableVersion{
				{Version: "1.36.3"}, {
					Version: "1.35.4", Classification: new(gardencorev1beta1.ClassificationDeprecated),
				},
			},
		},
		MachineImages: []gardencorev1beta1.MachineImage{
			{
				Name: "debian", Versions: []gardencorev1beta1.MachineImageVersion{
					{
						ExpirableVersion: gardencorev1beta1.ExpirableVersion{Version: "12.1.0"},
						Architectures:    []string{"arm64"},
					},
				},
			},
		},
		MachineTypes: []gardencorev1beta1.MachineType{{Name: "small", CPU: resource.MustParse("1")}},
		VolumeTypes:  []gardencorev1beta1.VolumeType{{Name: "disk", Class: "standard"}},
		Limits:       &gardencorev1beta1.Limits{MaxNodesTotal: new(int32(10))},
		Regions:      []gardencorev1beta1.Region{{Name: "here"}},
	}
}

func TestMerge(t *testing.T) {
	tests := map[string]struct {
		own  gardencorev1beta1.NamespacedCloudProfileSpec
		want func(*gardencorev1beta1.CloudProfileSpec)
	}{
		"nothing of its own": {
			gardencorev1beta1.NamespacedCloudProfileSpec{}, func(*gardencorev1beta1.CloudProfileSpec) {},
		},
		"certificates": {
			gardencorev1beta1.NamespacedCloudProfileSpec{CABundle: new("B")},
			func(p *gardencorev1beta1.CloudProfileSpec) { p.CABundle = new("A\nB") },
		},
		"a version lives longer; unknown versions are no use": {
			gardencorev1beta1.NamespacedCloudProfileSpec{
				Kubernetes: &gardencorev1beta1.KubernetesSettings{
					Versions: []gardencorev1beta1.ExpirableVersion{
						{Version: "1.35.4", ExpirationDate: &later}, {Version: "1.20.0"},
					},
				},
			},
			func(p *gardencorev1beta1.CloudProfileSpec) { p.Kubernetes.Versions[1].ExpirationDate = &later },
		},
		"image versions are changed in their life, and added": {
			gardencorev1beta1.NamespacedCloudProfileSpec{MachineImages: []gardencorev1beta1.MachineImage{
				{
					Name: "debian", UpdateStrategy: new(gardencorev1beta1.UpdateStrategyMinor),
					Versions: []gardencorev1beta1.MachineImageVersion{
						{
							ExpirableVersion: gardencorev1beta1.ExpirableVersion{
								Version: "12.1.0", ExpirationDate: &later,
							}, Architectures: []string{
								"amd64",
							},
						}, {
							ExpirableVersion: gardencorev1beta1.ExpirableVersion{Version: "12.1.1"},
						},
					},
				},
				{
					Name: "own", Versions: []gardencorev1beta1.MachineImageVersion{
						{ExpirableVersion: gardencorev1beta1.ExpirableVersion{Version: "1.0.0"}},
					},
				},
			}},
			func(p *gardencorev1beta1.CloudProfileSpec) {
				p.MachineImages[0].UpdateStrategy = new(gardencorev1beta1.UpdateStrategyMinor)
				p.MachineImages[0].Versions[0].ExpirationDate = &later
				p.MachineImages[0].Versions = append(p.MachineImages[0].Versions,
					gardencorev1beta1.MachineImageVersion{
						ExpirableVersion: gardencorev1beta1.ExpirableVersion{Version: "12.1.1"},
					})
				p.MachineImages = append(p.MachineImages,
					gardencorev1beta1.MachineImage{
						Name: "own", Versions: []gardencorev1beta1.MachineImageVersion{
							{ExpirableVersion: gardencorev1beta1.ExpirableVersion{Version: "1.0.0"}},
						},
					})
			},
		},
		"types are added, those of the parent stay": {
			gardencorev1beta1.NamespacedCloudProfileSpec{
				MachineTypes: []gardencorev1beta1.MachineType{
					{Name: "small", CPU: resource.MustParse("99")}, {Name: "big", CPU: resource.MustParse("8")},
				},
				VolumeTypes: []gardencorev1beta1.VolumeType{
					{Name: "disk", Class: "premium"}, {Name: "fast", Class: "premium"},
				},
			},
			func(p *gardencorev1beta1.CloudProfileSpec) {
				p.MachineTypes = append(p.MachineTypes,
					gardencorev1beta1.MachineType{Name: "big", CPU: resource.MustParse("8")})
				p.VolumeTypes = append(p.VolumeTypes, gardencorev1beta1.VolumeType{Name: "fast", Class: "premium"})
			},
		},
		"limits": {
			gardencorev1beta1.NamespacedCloudProfileSpec{
				Limits: &gardencorev1beta1.Limits{MaxNodesTotal: new(int32(50))},
			},
			func(p *gardencorev1beta1.CloudProfileSpec) { p.Limits.MaxNodesTotal = new(int32(50)) },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			parent, want := newParent(), newParent()
			test.want(want)
			got, err := Merge(parent, &test.own)
			if err != nil || !apiequality.Semantic.DeepEqual(got, want) {
				t.Errorf("merged = %+v, %v\nwant %+v", got, err, want)
			}
			if !apiequality.Semantic.DeepEqual(parent, newParent()) {
				t.Error("the parent was changed")
			}
		})
	}
}

func TestMergeConfigs(t *testing.T) {
	raw := func(text string) *runtime.RawExtension {
		if text == "" {
			return nil
		}
		return &runtime.RawExtension{Raw: []byte(text)}
	}
	tests := map[string]struct{ parent, own, want string }{
		"only the parent's": {`{"a":1}`, ``, `{"a":1}`},
		"only its own":      {``, `{"a":1}`, `{"a":1}`},
		"keys":              {`{"a":1,"b":{"c":1}}`, `{"a":2,"b":{"d":3}}`, `{"a":2,"b":{"c":1,"d":3}}`},
		"types": {
			`{"apiVersion":"x/v1","kind":"A"}`, `{"apiVersion":"x/v2","kind":"B","z":1}`,
			`{"apiVersion":"x/v1","kind":"A","z":1}`,
		},
		"lists by name and version": {
			`{"images":[{"name":"debian","versions":[{"version":"1","id":"a"}]}]}`,
			`{"images":[{"name":"debian","versions":[{"version":"2","id":"b"},{"version":"1","id":"c"}]},{"name":"own"}]}`,
			`{"images":[{"name":"debian","versions":[{"id":"c","version":"1"},{"id":"b","version":"2"}]},{"name":"own"}]}`,
		},
		"lists of values": {`{"zones":["a","b"]}`, `{"zones":["b","c"]}`, `{"zones":["a","b","c"]}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := mergeConfigs(raw(test.parent), raw(test.own))
			if err != nil {
				t.Fatal(err)
			}
			var a, b any
			if json.Unmarshal(got.Raw, &a) != nil || json.Unmarshal([]byte(test.want), &b) != nil ||
				!apiequality.Semantic.DeepEqual(a, b) {
				t.Errorf("merged = %s, want %s", got.Raw, test.want)
			}
		})
	}
	if _, err := mergeConfigs(raw(`{}`), raw(`[]`)); err == nil {
		t.Error("settings that are no object are accepted")
	}
}

func TestChildrenFollowTheirParent(t *testing.T) {
	ctx := context.Background()
	parent := &gardencorev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Spec: *newParent()}
	child := &gardencorev1beta1.NamespacedCloudProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "own", Generation: 3},
		Spec: gardencorev1beta1.NamespacedCloudProfileSpec{
			Parent: gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}, CABundle: new("B"),
		},
	}
	r := &Reconciler{
		Client: fake.NewClientBuilder().WithScheme(apis.GardenScheme()).WithObjects(parent,
			child).WithStatusSubresource(child).Build(),
	}
	for _, bundle := range []string{"A", "C"} {
		parent.Spec.CABundle = &bundle
		if err := r.Client.Update(ctx, parent); err != nil {
			t.Fatal(err)
		}
		requests := r.children(ctx, parent)
		if len(requests) != 1 {
			t.Fatalf("children = %v", requests)
		}
		if _, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: requests[0].NamespacedName}); err != nil {
			t.Fatal(err)
		}
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
			t.Fatal(err)
		}
		if merged := child.Status.CloudProfileSpec; merged == nil || *merged.CABundle != bundle+"\nB" ||
			child.Status.ObservedGeneration != 3 {
			t.Errorf("status = %+v", child.Status)
		}
	}
}
