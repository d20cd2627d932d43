package seed

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
)

func TestExtensionsReady(t *testing.T) {
	installation := func(name string, statuses map[gardencorev1beta1.ConditionType]gardencorev1beta1.ConditionStatus) gardencorev1beta1.ControllerInstallation {
		i := gardencorev1beta1.ControllerInstallation{Spec: gardencorev1beta1.ControllerInstallationSpec{RegistrationRef: corev1.ObjectReference{Name: name}}}
		for t, status := range statuses {
			i.Status.Conditions = append(i.Status.Conditions, gardencorev1beta1.Condition{Type: t, Status: status, Message: "because"})
		}
		return i
	}
	good := map[gardencorev1beta1.ConditionType]gardencorev1beta1.ConditionStatus{"Valid": "True", "Installed": "True", "Healthy": "True", "Progressing": "False"}
	for _, test := range []struct {
		name          string
		installations []gardencorev1beta1.ControllerInstallation
		status        gardencorev1beta1.ConditionStatus
		message       string
	}{
		{"none", nil, "True", "All extensions"},
		{"good", []gardencorev1beta1.ControllerInstallation{installation("a", good)}, "True", "All extensions"},
		{"not reported", []gardencorev1beta1.ControllerInstallation{installation("a", good), installation("b", nil)}, "False", "b: Valid is not reported yet"},
		{"unhealthy", []gardencorev1beta1.ControllerInstallation{installation("c", map[gardencorev1beta1.ConditionType]gardencorev1beta1.ConditionStatus{
			"Valid": "True", "Installed": "True", "Healthy": "False", "Progressing": "False",
		})}, "False", "c: Healthy is False: because"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ExtensionsReady(test.installations)
			if got.Status != test.status || !strings.Contains(got.Message, test.message) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

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
