package machinecontroller

import (
	"testing"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-garden/trellis/extensions/pkg/command"
)

func machine(deleting bool, state machinev1alpha1.MachineState, description string) *machinev1alpha1.Machine {
	m := &machinev1alpha1.Machine{}
	if deleting {
		now := metav1.Now()
		m.DeletionTimestamp = &now
	}
	m.Status.LastOperation = machinev1alpha1.LastOperation{
		Type: machinev1alpha1.MachineOperationDelete, State: state, Description: description,
	}
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
	if got := string(nudgePatch(m)); got !=
		`{"metadata":{"annotations":{"node.machine.sapcloud.io/preserve":"false"}}}` {
		t.Errorf("got %s", got)
	}
	m.Annotations = map[string]string{machineutils.PreserveMachineAnnotationKey: "false"}
	if got := string(nudgePatch(m)); got != `{"metadata":{"annotations":{"node.machine.sapcloud.io/preserve":null}}}` {
		t.Errorf("got %s", got)
	}
}

// Machines that are there at the start, or come, or go, are left to the machine controller's own pace.
func TestOnlyStepsWakeThePacer(t *testing.T) {
	steps := stepsTaken()
	deleting := machine(true, machinev1alpha1.MachineStateProcessing, machineutils.InitiateDrain)
	if steps.Create(event.CreateEvent{Object: deleting}) || steps.Delete(event.DeleteEvent{Object: deleting}) ||
		steps.Generic(event.GenericEvent{Object: deleting}) {
		t.Error("the pacer was woken without a step")
	}
	before := machine(true, machinev1alpha1.MachineStateProcessing, machineutils.GetVMStatus)
	if !steps.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: deleting}) {
		t.Error("a step did not wake the pacer")
	}
}

func TestPacerNudgesDeletedMachinesOnly(t *testing.T) {
	scheme, err := command.Scheme(machinev1alpha1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	for name, deleted := range map[string]bool{"deleted": true, "living": false} {
		m := machine(deleted, machinev1alpha1.MachineStateProcessing, machineutils.InitiateDrain)
		m.Namespace, m.Name, m.Finalizers = "shoot--demo--one", name,
			[]string{"machine.sapcloud.io/machine-controller-manager"}
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(m).Build()
		if _, err := (&pacer{client: c}).Reconcile(t.Context(),
			reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)}); err != nil {
			t.Fatal(err)
		}
		got := &machinev1alpha1.Machine{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), got); err != nil {
			t.Fatal(err)
		}
		if _, nudged := got.Annotations[machineutils.PreserveMachineAnnotationKey]; nudged != deleted {
			t.Errorf("%s: got %v", name, got.Annotations)
		}
	}
}

// A machine that is gone meanwhile, or a seed that does not answer, is no error: it would be tried again for nothing.
func TestPacerGivesUpQuietly(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	result, err := (&pacer{client: c}).Reconcile(t.Context(),
		reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "n", Name: "gone"}})
	if err != nil || result != (reconcile.Result{}) {
		t.Errorf("got %v, %v", result, err)
	}
}
