package machinestate

import (
	"encoding/json"
	"strings"
	"testing"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func owned(name, kind, owner string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "shoot--demo--one", Name: name, UID: "u", ResourceVersion: "7", Finalizers: []string{"f"},
		Labels:          map[string]string{"name": "pool"},
		OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: owner, Controller: new(true)}},
	}
}

func machine(name, set, providerID string, change ...func(*machinev1alpha1.Machine)) machinev1alpha1.Machine {
	m := machinev1alpha1.Machine{
		ObjectMeta: owned(name, "MachineSet", set), Spec: machinev1alpha1.MachineSpec{ProviderID: providerID},
		Status: machinev1alpha1.MachineStatus{CurrentStatus: machinev1alpha1.CurrentStatus{Phase: "Running"}},
	}
	for _, c := range change {
		c(&m)
	}
	return m
}

func collected() *State {
	deployment := machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}
	deployment.Spec.Replicas = 2
	set := machinev1alpha1.MachineSet{ObjectMeta: owned("pool-1", "MachineDeployment", "pool")}
	set.Spec.Replicas = 2
	return Collect([]machinev1alpha1.MachineDeployment{deployment},
		[]machinev1alpha1.MachineSet{
			set, {ObjectMeta: owned("stray", "MachineDeployment", "gone")},
		},
		[]machinev1alpha1.Machine{
			machine("b", "pool-1", "cloud:///b"), machine("a", "pool-1", "cloud:///a"),
			machine("not-made-yet", "pool-1", ""), machine("stray", "stray", "cloud:///stray"),
			machine("going", "pool-1", "cloud:///going", func(m *machinev1alpha1.Machine) {
				m.DeletionTimestamp = &metav1.Time{}
			}),
		})
}

// What is kept is named as before, and knows nothing of the seed that it was in.
func TestCollect(t *testing.T) {
	labels := map[string]string{"name": "pool"}
	want := &State{MachineDeployments: map[string]*Deployment{"pool": {
		Replicas: 2,
		MachineSets: []machinev1alpha1.MachineSet{{
			ObjectMeta: metav1.ObjectMeta{Name: "pool-1", Labels: labels},
			Spec:       machinev1alpha1.MachineSetSpec{Replicas: 2},
		}},
		Machines: []machinev1alpha1.Machine{
			{
				ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: labels},
				Spec:       machinev1alpha1.MachineSpec{ProviderID: "cloud:///a"},
			},
			{
				ObjectMeta: metav1.ObjectMeta{Name: "b", Labels: labels},
				Spec:       machinev1alpha1.MachineSpec{ProviderID: "cloud:///b"},
			},
		},
	}}}
	if diff := cmp.Diff(want, collected()); diff != "" {
		t.Error(diff)
	}
}

func TestPacking(t *testing.T) {
	raw, err := Pack(collected())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Pack(collected()); err != nil || string(again.Raw) != string(raw.Raw) {
		t.Errorf("packed again it differs: %v", err)
	}
	text, err := Unpack(raw.Raw)
	if err != nil {
		t.Fatal(err)
	}
	state, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(collected(), state); diff != "" {
		t.Error(diff)
	}
}

// A hostile seed has written a state: what comes of it has no owner, finalizer, namespace or status, and no size that
// would hurt.
func TestAttackStateOfMachines(t *testing.T) {
	hostile := &State{MachineDeployments: map[string]*Deployment{"pool": {
		Machines:    []machinev1alpha1.Machine{machine("a", "pool-1", "x")},
		MachineSets: []machinev1alpha1.MachineSet{{ObjectMeta: owned("pool-1", "Namespace", "kube-system")}},
	}}}
	text, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	state, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	pool := state.MachineDeployments["pool"]
	for _, object := range []metav1.Object{&pool.Machines[0], &pool.MachineSets[0]} {
		if object.GetNamespace() != "" || object.GetUID() != "" || len(object.GetFinalizers()) > 0 ||
			len(object.GetOwnerReferences()) > 0 {
			t.Errorf("%s has %v", object.GetName(), object)
		}
	}
	if pool.Machines[0].Status.CurrentStatus.Phase != "" {
		t.Error("the status is taken over")
	}
	if _, err := Decode([]byte(`{"machineDeployments":{"pool":null}}`)); err == nil {
		t.Error("a MachineDeployment without state is accepted")
	}
	bomb, err := Pack(&State{MachineDeployments: map[string]*Deployment{strings.Repeat("a", most): {}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Unpack(bomb.Raw); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("want an error about the size, got %v", err)
	}
	for _, raw := range []string{``, `{}`, `{"state":"AAAA"}`} {
		if _, err := Unpack([]byte(raw)); err == nil {
			t.Errorf("%q is unpacked", raw)
		}
	}
}
