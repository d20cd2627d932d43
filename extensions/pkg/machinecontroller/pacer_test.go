package machinecontroller

import (
	"testing"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func machine(deleting bool, state machinev1alpha1.MachineState, description string) *machinev1alpha1.Machine {
	m := &machinev1alpha1.Machine{}
	if deleting {
		now := metav1.Now()
		m.DeletionTimestamp = &now
	}
	m.Status.LastOperation = machinev1alpha1.LastOperation{Type: machinev1alpha1.MachineOperationDelete, State: state, Description: description}
	return m
}

func TestTookStep(t *testing.T) {
	working, failed := machinev1alpha1.MachineStateProcessing, machinev1alpha1.MachineStateFailed
	first, second := machineutils.GetVMStatus, "VM found. "+machineutils.InitiateDrain
	for name, test := range map[string]struct {
		before, after *machinev1alpha1.Machine
		want          bool
	}{
		"begun":          {machine(true, working, "joined"), machine(true, working, first), true},
		"next step":      {machine(true, working, first), machine(true, working, second), true},
		"same step":      {machine(true, working, second), machine(true, working, "Still draining. "+second), false},
		"own annotation": {machine(true, working, second), machine(true, working, second), false},
		"failed":         {machine(true, working, first), machine(true, failed, second), false},
		"not deleted":    {machine(false, working, first), machine(false, working, second), false},
		"something else": {machine(true, working, first), machine(true, working, "health"), false},
	} {
		if got := tookStep(test.before, test.after); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestNudgePatchAlternates(t *testing.T) {
	m := machine(true, machinev1alpha1.MachineStateProcessing, "a")
	if got := string(nudgePatch(m)); got != `{"metadata":{"annotations":{"node.machine.sapcloud.io/preserve":"false"}}}` {
		t.Errorf("got %s", got)
	}
	m.Annotations = map[string]string{machineutils.PreserveMachineAnnotationKey: "false"}
	if got := string(nudgePatch(m)); got != `{"metadata":{"annotations":{"node.machine.sapcloud.io/preserve":null}}}` {
		t.Errorf("got %s", got)
	}
}
