package admission

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/strictyaml"
)

// ShootResourceReservationName is the name of the plugin that keeps resources of nodes for the kubelet and containerd.
const ShootResourceReservationName = "ShootResourceReservation"

// reservationConfig is the plugin's part of --admission-control-config-file.
type reservationConfig struct {
	metav1.TypeMeta `json:",inline"`
	// UseGKEFormula reserves more on larger machines, by the published formula of Google's Kubernetes service. Without
	// it every machine reserves the same.
	UseGKEFormula bool `json:"useGKEFormula,omitempty"`
	// Selector selects, by labels, the shoots for which the formula is used. Default: all.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// What is reserved without the formula.
var (
	staticCPU    = resource.MustParse("80m")
	staticMemory = resource.MustParse("1Gi")
	staticPIDs   = resource.MustParse("20k")
)

// shootResourceReservation sets kubeReserved of new shoots that leave it out.
type shootResourceReservation struct {
	*admission.Handler
	dependent
	config reservationConfig
}

var _ admission.MutationInterface = &shootResourceReservation{}

func newShootResourceReservation(config io.Reader) (*shootResourceReservation, error) {
	s := &shootResourceReservation{Handler: admission.NewHandler(admission.Create)}
	if config == nil {
		return s, nil
	}
	data, err := io.ReadAll(config)
	if err != nil {
		return nil, err
	}
	if err := strictyaml.Unmarshal(data, &s.config, nil); err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", ShootResourceReservationName, err)
	}
	return s, nil
}

// Admit implements admission.MutationInterface.
func (s *shootResourceReservation) Admit(ctx context.Context, a admission.Attributes,
	_ admission.ObjectInterfaces) error {
	shoot, _, ok := written[*gardencorev1beta1.Shoot](a)
	if !ok || gardencorev1beta1.IsWorkerless(shoot) || hasReservation(shoot.Spec.Kubernetes.Kubelet) {
		return nil
	}
	if !s.config.UseGKEFormula || (s.config.Selector != nil && !selects(s.config.Selector, shoot.Labels)) {
		reserveStatically(shoot)
		return nil
	}
	profile, err := profileOf(ctx, s.Reader, shoot)
	if isMissing(err) || profile == nil && err == nil {
		return nil // refused by ShootValidator
	}
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	reserveByFormula(shoot, profile)
	return nil
}

func hasReservation(kubelet *gardencorev1beta1.KubeletConfig) bool {
	return kubelet != nil && kubelet.KubeReserved != nil
}

func reserveStatically(shoot *gardencorev1beta1.Shoot) {
	if shoot.Spec.Kubernetes.Kubelet == nil {
		shoot.Spec.Kubernetes.Kubelet = &gardencorev1beta1.KubeletConfig{}
	}
	shoot.Spec.Kubernetes.Kubelet.KubeReserved = &gardencorev1beta1.KubeletConfigReserved{
		CPU: &staticCPU, Memory: &staticMemory, PID: &staticPIDs,
	}
}

func reserveByFormula(shoot *gardencorev1beta1.Shoot, profile *gardencorev1beta1.CloudProfileSpec) {
	for i := range shoot.Spec.Provider.Workers {
		worker := &shoot.Spec.Provider.Workers[i]
		machine := machineType(profile, worker.Machine.Type)
		if machine == nil || worker.Kubernetes != nil && hasReservation(worker.Kubernetes.Kubelet) {
			continue
		}
		if worker.Kubernetes == nil {
			worker.Kubernetes = &gardencorev1beta1.WorkerKubernetes{}
		}
		if worker.Kubernetes.Kubelet == nil {
			worker.Kubernetes.Kubelet = shoot.Spec.Kubernetes.Kubelet.DeepCopy()
		}
		if worker.Kubernetes.Kubelet == nil {
			worker.Kubernetes.Kubelet = &gardencorev1beta1.KubeletConfig{}
		}
		worker.Kubernetes.Kubelet.KubeReserved = reservationOf(machine)
	}
}

// reservationOf reserves a falling share of what a machine has.
func reservationOf(machine *gardencorev1beta1.MachineType) *gardencorev1beta1.KubeletConfigReserved {
	const gibibyte = int64(1) << 30
	cpu := resource.NewMilliQuantity(shares(machine.CPU.MilliValue(),
		[]share{{1000, 60}, {1000, 10}, {2000, 5}, {0, 2.5}}), resource.DecimalSI)
	memory := int64(255) << 20
	if machine.Memory.Value() >= gibibyte {
		memory = shares(machine.Memory.Value(),
			[]share{{4 * gibibyte, 250}, {4 * gibibyte, 200}, {8 * gibibyte, 100}, {112 * gibibyte, 60}, {0, 20}})
	}
	pids := staticPIDs
	return &gardencorev1beta1.KubeletConfigReserved{
		CPU: cpu, Memory: resource.NewQuantity(memory>>20<<20, resource.BinarySI), PID: &pids,
	}
}

// share is how many thousandths of the next part of a resource are reserved. The last part has no size.
type share struct {
	size        int64
	thousandths float64
}

func shares(total int64, parts []share) int64 {
	reserved := 0.0
	for _, part := range parts {
		size := total
		if part.size > 0 {
			size = min(size, part.size)
		}
		reserved += float64(size) * part.thousandths / 1000
		total -= size
	}
	return int64(reserved)
}
