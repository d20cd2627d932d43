// Package machinestate is what of the machines of a shoot is kept for another seed: which there are, what they are
// called, and what the infrastructure calls them. Whoever has that goes on with these machines, and makes no others.
// The format is that of Gardener's ShootStates and of status.state of Workers that are restored.
package machinestate

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// most bounds what is unpacked: many times what the machines of the largest shoot come to.
const most = 64 << 20

// State is that of all machines of a shoot.
type State struct {
	// MachineDeployments by their names.
	MachineDeployments map[string]*Deployment `json:"machineDeployments,omitempty"`
}

// Deployment is what a MachineDeployment has.
type Deployment struct {
	// Replicas are wanted.
	Replicas int32 `json:"replicas,omitempty"`
	// MachineSets and Machines have names, labels, annotations and specifications only.
	MachineSets []machinev1alpha1.MachineSet `json:"machineSets,omitempty"`
	Machines    []machinev1alpha1.Machine    `json:"machines,omitempty"`
}

// Collect returns the state of the machines of a namespace. Machines that are being deleted, and those that the
// infrastructure has not made yet, are left out.
func Collect(deployments []machinev1alpha1.MachineDeployment, sets []machinev1alpha1.MachineSet,
	machines []machinev1alpha1.Machine) *State {
	state := &State{MachineDeployments: map[string]*Deployment{}}
	for i := range deployments {
		if deployments[i].DeletionTimestamp == nil {
			state.MachineDeployments[deployments[i].Name] = &Deployment{Replicas: deployments[i].Spec.Replicas}
		}
	}
	ofSet := map[string]*Deployment{}
	for i := range sets {
		set := &sets[i]
		if owner := state.MachineDeployments[ownerOf(set)]; owner != nil && set.DeletionTimestamp == nil {
			ofSet[set.Name] = owner
			owner.MachineSets = append(owner.MachineSets,
				machinev1alpha1.MachineSet{ObjectMeta: kept(set.ObjectMeta), Spec: *set.Spec.DeepCopy()})
		}
	}
	for i := range machines {
		machine := &machines[i]
		if owner := ofSet[ownerOf(machine)]; owner != nil && machine.DeletionTimestamp == nil &&
			machine.Spec.ProviderID != "" {
			owner.Machines = append(owner.Machines,
				machinev1alpha1.Machine{ObjectMeta: kept(machine.ObjectMeta), Spec: *machine.Spec.DeepCopy()})
		}
	}
	for _, deployment := range state.MachineDeployments {
		slices.SortFunc(deployment.MachineSets,
			func(a, b machinev1alpha1.MachineSet) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(deployment.Machines,
			func(a, b machinev1alpha1.Machine) int { return strings.Compare(a.Name, b.Name) })
	}
	return state
}

// ownerOf is the name of the controller of an object.
func ownerOf(object metav1.Object) string {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return owner.Name
	}
	return ""
}

// kept is what is kept of the metadata of an object. Owners are found by labels elsewhere.
func kept(meta metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: meta.Name, Labels: meta.Labels, Annotations: meta.Annotations}
}

// packed is the compressed form.
type packed struct {
	// State is JSON, compressed by gzip.
	State []byte `json:"state"`
}

// Pack compresses a state, always in the same way.
func Pack(state *State) (*runtime.RawExtension, error) {
	text, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	if _, err := writer.Write(text); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(packed{State: compressed.Bytes()})
	return &runtime.RawExtension{Raw: raw}, err
}

// Unpack returns the JSON of a compressed state.
func Unpack(raw []byte) ([]byte, error) {
	var content packed
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, fmt.Errorf("the state of the machines: %w", err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(content.State))
	if err != nil {
		return nil, fmt.Errorf("the state of the machines: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(reader, most+1))
	if err != nil {
		return nil, fmt.Errorf("the state of the machines: %w", err)
	}
	if len(text) > most {
		return nil, fmt.Errorf("the state of the machines is larger than %d bytes", most)
	}
	return text, nil
}

// Decode reads the JSON of a state. Of its objects it returns what Collect would have: neither owners nor finalizers.
func Decode(text []byte) (*State, error) {
	state := &State{}
	if err := json.Unmarshal(text, state); err != nil {
		return nil, fmt.Errorf("the state of the machines: %w", err)
	}
	for name, deployment := range state.MachineDeployments {
		if deployment == nil {
			return nil, errors.New("the state of the machines: MachineDeployment " + name + " has none")
		}
		for i := range deployment.MachineSets {
			set := &deployment.MachineSets[i]
			*set = machinev1alpha1.MachineSet{ObjectMeta: kept(set.ObjectMeta), Spec: set.Spec}
		}
		for i := range deployment.Machines {
			machine := &deployment.Machines[i]
			*machine = machinev1alpha1.Machine{ObjectMeta: kept(machine.ObjectMeta), Spec: machine.Spec}
		}
	}
	return state, nil
}
