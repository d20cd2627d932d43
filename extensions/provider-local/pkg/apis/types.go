// Package apis holds what provider-local puts into the fields of extension objects that are the provider's own.
package apis

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// APIVersion of the kinds below.
	APIVersion = "local.provider.extensions.gardener.cloud/v1alpha1"

	// Type is the type of the extension objects that this provider is responsible for.
	Type = "local"
)

// LabelCloud is on nodes of the seed that are not the local cloud's, with the value CloudElsewhere: they have neither
// the bridges of networks of machines nor the volumes of shoots.
const (
	LabelCloud     = "local.trellis.garden/cloud"
	CloudElsewhere = "elsewhere"
)

// ProviderIDPrefix begins spec.providerID of nodes that are machines of the local cloud.
const ProviderIDPrefix = "local:///"

// AtCloud keeps pods on the node of the local cloud. Where no node has such a label, any will do: there is one, or the
// cloud is elsewhere.
func AtCloud() *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: LabelCloud, Operator: corev1.NodeSelectorOpNotIn, Values: []string{CloudElsewhere}},
			}}},
		},
	}}
}

// InfrastructureConfig may be set in the Shoot as spec.provider.infrastructureConfig.
type InfrastructureConfig struct {
	metav1.TypeMeta `json:",inline"`
	// Networks restricts the network of the machines.
	Networks *Networks `json:"networks,omitempty"`
}

// Networks restricts the network of the machines.
type Networks struct {
	// Workers is the range from which the network of the machines is taken. Default: spec.networking.nodes of the
	// Shoot, else the local cloud's own.
	Workers string `json:"workers,omitempty"`
}

// InfrastructureStatus is the providerStatus of Infrastructures. ControlPlane and Worker read it.
type InfrastructureStatus struct {
	metav1.TypeMeta `json:",inline"`
	// Namespace is where the pods run that are machines.
	Namespace string `json:"namespace"`
	// Network is that of the machines.
	Network Network `json:"network"`
	// Nameservers are for the machines.
	Nameservers []string `json:"nameservers,omitempty"`
}

// Network is a network of machines.
type Network struct {
	Name    string `json:"name"`
	CIDR    string `json:"cidr"`
	Gateway string `json:"gateway"`
	Bridge  string `json:"bridge"`
}

// MachineVolumesDir is where machines, and what provisions volumes for their pods, find the folder of the node for
// their volumes.
const MachineVolumesDir = "/var/lib/local-volumes"

// CloudProfileConfig is the providerConfig of CloudProfiles: which image a machine pod has for a machine image.
type CloudProfileConfig struct {
	metav1.TypeMeta `json:",inline"`
	MachineImages   []MachineImage `json:"machineImages"`
}

// MachineImage is an image of the CloudProfile.
type MachineImage struct {
	Name     string                `json:"name"`
	Versions []MachineImageVersion `json:"versions"`
}

// MachineImageVersion maps a version to a container image.
type MachineImageVersion struct {
	Version string `json:"version"`
	Image   string `json:"image"`
}

// MachineSpec is the providerSpec of MachineClasses: what the machine driver makes a pod from.
type MachineSpec struct {
	// Image is the container image that the machine boots.
	Image string `json:"image"`
	// Namespace is that of the infrastructure.
	Namespace string `json:"namespace"`
	// Nameservers are for the machine.
	Nameservers []string `json:"nameservers,omitempty"`
	// VolumesDir is the folder of the node for volumes of the machine's pods; all machines of a shoot share it, as
	// disks of a cloud can be attached to any of them.
	VolumesDir string `json:"volumesDir,omitempty"`
	// Memory that the machine offers: that of its machine type. Absent: all that the node has.
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// Encode makes a value ready for a field of an extension object.
func Encode(value any) (*runtime.RawExtension, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", value, err)
	}
	return &runtime.RawExtension{Raw: raw}, nil
}

// Decode reads a value from such a field. An absent field leaves the zero value.
func Decode[T any](raw *runtime.RawExtension) (T, error) {
	var value T
	if raw == nil || len(raw.Raw) == 0 {
		return value, nil
	}
	if err := json.Unmarshal(raw.Raw, &value); err != nil {
		return value, fmt.Errorf("decoding %T: %w", value, err)
	}
	return value, nil
}
