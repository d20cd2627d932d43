package seed

import (
	"testing"

	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
)

func TestOverlayKeepsWhatTheServerDefaulted(t *testing.T) {
	spec := &gardencorev1beta1.SeedSpec{
		Settings: &gardencorev1beta1.SeedSettings{Scheduling: &gardencorev1beta1.SeedSettingScheduling{Visible: true}},
		Networks: gardencorev1beta1.SeedNetworks{Pods: "10.1.0.0/16", IPFamilies: []gardencorev1beta1.IPFamily{gardencorev1beta1.IPFamilyIPv4}},
		Taints:   []gardencorev1beta1.SeedTaint{{Key: "old"}},
	}
	overlay(spec, &gardencorev1beta1.SeedSpec{Networks: gardencorev1beta1.SeedNetworks{Pods: "10.1.0.0/16", Nodes: ptr.To("172.18.0.0/24")}})
	if spec.Settings == nil || len(spec.Networks.IPFamilies) != 1 || *spec.Networks.Nodes != "172.18.0.0/24" || spec.Taints != nil {
		t.Errorf("got %+v", spec)
	}
}

func TestCapacity(t *testing.T) {
	total, allocatable := capacity(config.Resources{Capacity: config.ResourceCounts{Shoots: 10}, Reserved: config.ResourceCounts{Shoots: 3}})
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
	if next := operation(s, gardencorev1beta1.LastOperationStateProcessing, 0, ""); next.Type != gardencorev1beta1.LastOperationTypeReconcile {
		t.Errorf("after the creation it is %s", next.Type)
	}
}
