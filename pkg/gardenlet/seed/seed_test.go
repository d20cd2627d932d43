package seed

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
)

func TestOverlayKeepsWhatTheServerDefaulted(t *testing.T) {
	spec := &gardencorev1beta1.SeedSpec{
		Settings: &gardencorev1beta1.SeedSettings{Scheduling: &gardencorev1beta1.SeedSettingScheduling{Visible: true}},
		Networks: gardencorev1beta1.SeedNetworks{
			Pods: "10.1.0.0/16", IPFamilies: []gardencorev1beta1.IPFamily{gardencorev1beta1.IPFamilyIPv4},
		},
		Taints: []gardencorev1beta1.SeedTaint{{Key: "old"}},
	}
	overlay(spec, &gardencorev1beta1.SeedSpec{
		Networks: gardencorev1beta1.SeedNetworks{Pods: "10.1.0.0/16", Nodes: new("172.18.0.0/24")},
	})
	if spec.Settings == nil || len(spec.Networks.IPFamilies) != 1 || *spec.Networks.Nodes != "172.18.0.0/24" ||
		spec.Taints != nil {
		t.Errorf("got %+v", spec)
	}
}

func TestCapacity(t *testing.T) {
	total, allocatable := capacity(config.Resources{
		Capacity: config.ResourceCounts{Shoots: 10}, Reserved: config.ResourceCounts{Shoots: 3},
	})
	if got := total["shoots"]; got.Value() != 10 {
		t.Errorf("capacity is %v", total)
	}
	if got := allocatable["shoots"]; got.Value() != 7 {
		t.Errorf("allocatable is %v", allocatable)
	}
}

func TestOperation(t *testing.T) {
	s := &gardencorev1beta1.SeedStatus{}
	s.LastOperation = operation(s, gardencorev1beta1.LastOperationStateProcessing, 0, "")
	s.LastOperation = operation(s, gardencorev1beta1.LastOperationStateError, 50, "")
	if s.LastOperation.Type != gardencorev1beta1.LastOperationTypeCreate {
		t.Errorf("after a failure it is %s", s.LastOperation.Type)
	}
	s.LastOperation = operation(s, gardencorev1beta1.LastOperationStateSucceeded, 100, "")
	if next := operation(s, gardencorev1beta1.LastOperationStateProcessing, 0,
		""); next.Type != gardencorev1beta1.LastOperationTypeReconcile {
		t.Errorf("after the creation it is %s", next.Type)
	}
}

// What the garden refuses does not stop gardenlet: the Seed stays, and tells what to do.
func TestRefusedConfigurationIsReported(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := gardencorev1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	present := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	refusal := apierrors.NewForbidden(gardencorev1beta1.Resource("seeds"), "one",
		errors.New("spec.taints: operators decide about that"))
	garden := fake.NewClientBuilder().WithScheme(scheme).WithObjects(present).WithInterceptorFuncs(interceptor.Funcs{
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return refusal },
	}).Build()
	wanted := &config.SeedConfig{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	wanted.Spec.Taints = []gardencorev1beta1.SeedTaint{{Key: "new"}}
	reconciler := &Reconciler{Garden: garden, Config: &config.Configuration{SeedConfig: wanted}}
	seed, err := reconciler.Ensure(t.Context())
	if err != nil || len(seed.Spec.Taints) > 0 {
		t.Fatalf("got %+v, %v; want the Seed as it is", seed, err)
	}
	if got := reconciler.success(seed); !strings.Contains(got, "spec.taints: operators decide") {
		t.Errorf("the status says %q", got)
	}
	seed.Spec.Taints = wanted.Spec.Taints
	if got := reconciler.success(seed); strings.Contains(got, "spec.taints") {
		t.Errorf("an operator has changed the Seed, and the status says %q", got)
	}
}

// Vendors append their own build to the version.
func TestSupportsSeed(t *testing.T) {
	for kubernetes, want := range map[string]string{
		"v1.36.3": "", "v1.29.0": "", "v1.30.2-gke.100": "",
		"v1.28.15": "needs Kubernetes 1.29 or newer, and this cluster has v1.28.15", "": "version of Kubernetes",
	} {
		if err := supportsSeed(kubernetes); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", kubernetes, err, want)
		}
	}
}
