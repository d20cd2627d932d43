package worker

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/machinestate"
)

const poolA = technicalID + "-a-z1"

// stateOfPool is that of a pool with two machines, one of them of an older class.
func stateOfPool(name string) *machinestate.State {
	labelled := func(object string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: object, Labels: map[string]string{labelName: name, "node": object}}
	}
	machine := func(object, class string) machinev1alpha1.Machine {
		return machinev1alpha1.Machine{ObjectMeta: labelled(object), Spec: machinev1alpha1.MachineSpec{
			ProviderID: "cloud:///" + object, Class: machinev1alpha1.ClassSpec{Kind: "MachineClass", Name: class},
		}}
	}
	return &machinestate.State{MachineDeployments: map[string]*machinestate.Deployment{name: {
		Replicas:    2,
		MachineSets: []machinev1alpha1.MachineSet{{ObjectMeta: labelled(name + "-1")}},
		Machines:    []machinev1alpha1.Machine{machine(name+"-1-x", name+"-older"), machine(name+"-1-y", "")},
	}}}
}

func withState(t *testing.T, worker *extensionsv1alpha1.Worker,
	state *machinestate.State) *extensionsv1alpha1.Worker {
	t.Helper()
	raw, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	worker.Status.State = &runtime.RawExtension{Raw: raw}
	return worker
}

// The machines of a seed that was lost go on as they are: each has its object, with the ID that the infrastructure
// knows it by, before machine-controller-manager comes; and there are as many as there were.
func TestMachinesAreTakenOver(t *testing.T) {
	worker := workerOf(poolNamed("a", "z1"))
	worker.Spec.Pools[0].Minimum, worker.Spec.Pools[0].Maximum = 1, 3
	withState(t, worker, stateOfPool(poolA))
	c := seed(t, userDataSecret(), worker)
	known := -1
	watched := interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			if _, ok := object.(*appsv1.Deployment); ok {
				known = count(t, c, &machinev1alpha1.MachineList{})
			}
			return c.Create(ctx, object, o...)
		},
	})
	for range 2 {
		if err := actuatorOf(watched).Restore(t.Context(), logr.Discard(), worker, shootOf(false)); err != nil {
			t.Fatal(err)
		}
	}
	if known != 2 {
		t.Errorf("machine-controller-manager found %d machines", known)
	}
	machine := &machinev1alpha1.Machine{}
	key := client.ObjectKey{Namespace: technicalID, Name: poolA + "-1-y"}
	if err := c.Get(t.Context(), key, machine); err != nil || machine.Spec.ProviderID != "cloud:///"+key.Name ||
		machine.Labels["node"] != key.Name {
		t.Errorf("the machine is %+v, %v", machine, err)
	}
	deployment := &machinev1alpha1.MachineDeployment{}
	key.Name = poolA
	if err := c.Get(t.Context(), key, deployment); err != nil || deployment.Spec.Replicas != 2 {
		t.Errorf("%d machines are wanted, %v", deployment.Spec.Replicas, err)
	}
}

// What machine-controller-manager has deleted since does not come back by another try.
func TestTakenOverOnce(t *testing.T) {
	worker := withState(t, workerOf(poolNamed("a", "z1")), stateOfPool(poolA))
	c := seed(t, userDataSecret(), worker)
	a := actuatorOf(c)
	restore := func() {
		if err := a.Restore(t.Context(), logr.Discard(), worker, shootOf(false)); err != nil {
			t.Fatal(err)
		}
	}
	restore()
	gone := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: poolA + "-1-x"}}
	if err := c.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	restore()
	if got := count(t, c, &machinev1alpha1.MachineList{}); got != 1 {
		t.Errorf("there are %d machines", got)
	}
}

// A machine of a class that is wanted no longer can be deleted: its class is there until it has gone.
func TestOlderClasses(t *testing.T) {
	worker := withState(t, workerOf(poolNamed("a", "z1")), stateOfPool(poolA))
	c := seed(t, userDataSecret(), worker)
	known, err := machinestate.Decode(worker.Status.State.Raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := actuatorOf(c).takeOver(t.Context(), logr.Discard(), worker, shootOf(false), known); err != nil {
		t.Fatal(err)
	}
	if got := count(t, c, &machinev1alpha1.MachineClassList{}); got != 2 {
		t.Errorf("there are %d classes", got)
	}
}

// Machines for which nobody would care are not passed over, nor are objects taken that belong elsewhere.
func TestAttackMachinesOfNobody(t *testing.T) {
	foreign := stateOfPool(poolA)
	foreign.MachineDeployments[poolA].Machines[0].Labels[labelName] = "another"
	for want, state := range map[string]*machinestate.State{
		"leave the pools as they were": stateOfPool(technicalID + "-gone-z1"),
		"does not have the label name": foreign,
	} {
		worker := withState(t, workerOf(poolNamed("a", "z1")), state)
		c := seed(t, userDataSecret(), worker)
		err := actuatorOf(c).Restore(t.Context(), logr.Discard(), worker, shootOf(false))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error about %q, got %v", want, err)
		}
		if got := count(t, c, &machinev1alpha1.MachineList{}); got != 0 {
			t.Errorf("%s: %d machines were made", want, got)
		}
	}
}

// A seed that has machines no longer stops what acts on them, and deletes none.
func TestMachinesAreLeft(t *testing.T) {
	worker := withState(t, workerOf(poolNamed("a", "z1")), stateOfPool(poolA))
	c := seed(t, userDataSecret(), worker)
	a := actuatorOf(c)
	if err := a.Restore(t.Context(), logr.Discard(), worker, shootOf(false)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.Migrate(t.Context(), logr.Discard(), worker, shootOf(false)); err != nil {
			t.Fatal(err)
		}
	}
	manager := &appsv1.Deployment{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: technicalID, Name: ManagerName}, manager); err != nil ||
		*manager.Spec.Replicas != 0 {
		t.Errorf("machine-controller-manager goes on: %v, %v", manager.Spec.Replicas, err)
	}
	if got := count(t, c, &machinev1alpha1.MachineList{}); got != 2 {
		t.Errorf("there are %d machines", got)
	}
}
