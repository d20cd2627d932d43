// Package worker is the Worker controller of provider-local: machines are pods with the image that the CloudProfile
// names.
package worker

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/pkg/worker"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/apis"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/loadbalancers"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/volumes"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// Options of the controller.
type Options struct {
	// MachineControllerManager is the image of machine-controller-manager.
	MachineControllerManager string
	// Image is the one of this extension: its command machine-controller is the driver.
	Image string
	// MachineImage finds the container image of machine images that the CloudProfile does not map.
	MachineImage func(name, version string) (string, error)
	// VolumesDir is the folder of the seed's nodes with one folder of volumes for each shoot, as the local cloud makes
	// them. Without it shoots have no volumes.
	VolumesDir string
}

// Add registers the controller.
func Add(mgr manager.Manager, options Options) error {
	return worker.Add(mgr, worker.Options{
		Type:                     apis.Type,
		Delegate:                 delegate{machineImage: options.MachineImage, volumesDir: options.VolumesDir},
		MachineControllerManager: options.MachineControllerManager,
		MachineController:        corev1.Container{Image: options.Image, Args: []string{"machine-controller"}},
		ShootRules:               slices.Concat(volumes.Rules(), loadbalancers.Rules()),
	})
}

type delegate struct {
	machineImage func(name, version string) (string, error)
	volumesDir   string
}

// volumesOf is the folder of the nodes that is mounted for a shoot. It follows from the operator's setting alone: what
// the cloud answers is the word of whom the shoot's owner names as the cloud.
func (d delegate) volumesOf(scope worker.Scope) string {
	if d.volumesDir == "" {
		return ""
	}
	return filepath.Join(d.volumesDir, scope.Worker.Namespace)
}

// ProviderSpec implements worker.Delegate.
func (d delegate) ProviderSpec(_ context.Context, scope worker.Scope, pool extensionsv1alpha1.WorkerPool,
	_ string) (any, error) {
	if len(pool.DataVolumes) > 0 {
		return nil, extension.WithCodes(fmt.Errorf("pool %s: dataVolumes: machines of provider local have the disk "+
			"of this machine only; leave dataVolumes out", pool.Name),
			gardencorev1beta1.ErrorConfigurationProblem)
	}
	infrastructure, err := apis.Decode[apis.InfrastructureStatus](scope.Worker.Spec.InfrastructureProviderStatus)
	if err != nil {
		return nil, err
	}
	if infrastructure.Namespace == "" {
		return nil, fmt.Errorf("spec.infrastructureProviderStatus has no namespace; is the Infrastructure ready?")
	}
	image, err := d.imageFor(scope, pool.MachineImage)
	if err != nil {
		return nil, extension.WithCodes(err, gardencorev1beta1.ErrorConfigurationProblem)
	}
	return apis.MachineSpec{
		Image: image, Namespace: infrastructure.Namespace, Nameservers: infrastructure.Nameservers,
		VolumesDir: d.volumesOf(scope), Memory: memoryOf(pool),
	}, nil
}

// memoryOf is that of the pool's machine type; nil if it is not known.
func memoryOf(pool extensionsv1alpha1.WorkerPool) *resource.Quantity {
	if pool.NodeTemplate == nil {
		return nil
	}
	memory := pool.NodeTemplate.Capacity.Memory()
	if memory.Sign() <= 0 {
		return nil
	}
	return new(memory.DeepCopy())
}

// ExtendPod implements worker.PodExtender: the machine driver also provisions volumes for the shoot's pods.
func (d delegate) ExtendPod(scope worker.Scope, pod *corev1.PodSpec) error {
	folder := d.volumesOf(scope)
	if folder == "" {
		return nil
	}
	pod.Affinity = apis.AtCloud()
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "volumes", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: folder, Type: new(corev1.HostPathDirectoryOrCreate)},
	}})
	for i := range pod.Containers {
		if container := &pod.Containers[i]; container.Name == worker.ControllerName {
			container.Args = append(container.Args, "--volumes-dir="+apis.MachineVolumesDir)
			container.VolumeMounts = append(container.VolumeMounts,
				corev1.VolumeMount{Name: "volumes", MountPath: apis.MachineVolumesDir})
			runAsOwnerOfVolumes(container.SecurityContext)
		}
	}
	return nil
}

// runAsOwnerOfVolumes lets the container make folders that are root's, and remove what any user has written into them.
func runAsOwnerOfVolumes(context *corev1.SecurityContext) {
	context.RunAsNonRoot, context.RunAsUser, context.RunAsGroup = new(false), new(int64(0)), new(int64(0))
	context.Capabilities = &corev1.Capabilities{
		Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"DAC_OVERRIDE", "FOWNER"},
	}
}

// imageFor looks into the CloudProfile first.
func (d delegate) imageFor(scope worker.Scope, wanted extensionsv1alpha1.MachineImage) (string, error) {
	if profile := scope.Cluster.CloudProfile; profile != nil {
		config, err := apis.Decode[apis.CloudProfileConfig](profile.Spec.ProviderConfig)
		if err != nil {
			return "", fmt.Errorf("CloudProfile %s: spec.providerConfig: %w", profile.Name, err)
		}
		if image := find(config, wanted); image != "" {
			return image, nil
		}
	}
	return d.machineImage(wanted.Name, wanted.Version)
}

func find(config apis.CloudProfileConfig, wanted extensionsv1alpha1.MachineImage) string {
	for _, image := range config.MachineImages {
		if image.Name != wanted.Name {
			continue
		}
		for _, version := range image.Versions {
			if version.Version == wanted.Version {
				return version.Image
			}
		}
	}
	return ""
}
