package controllerinstallation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// gardenKubeconfigEnv names the file with the kubeconfig for the garden in the containers of extensions. The name
	// and the folder are those of the published API.
	gardenKubeconfigEnv    = "GARDEN_KUBECONFIG"
	gardenKubeconfigFolder = "/var/run/secrets/gardener.cloud/garden/generic-kubeconfig"
	gardenKubeconfigVolume = "garden-kubeconfig"
)

// podSpecPaths are where workloads hold the specification of their pods.
var podSpecPaths = map[string][]string{
	"Deployment": {"spec", "template", "spec"}, "StatefulSet": {"spec", "template", "spec"},
	"DaemonSet": {"spec", "template", "spec"},
	"Job":       {"spec", "template", "spec"}, "CronJob": {"spec", "jobTemplate", "spec", "template", "spec"},
	"Pod": {"spec"},
}

// injectGardenKubeconfig gives every container of a workload the kubeconfig for the garden. Other objects stay as they
// are.
func injectGardenKubeconfig(object *unstructured.Unstructured) error {
	path, isWorkload := podSpecPaths[object.GetKind()]
	if !isWorkload {
		return nil
	}
	raw, found, err := unstructured.NestedMap(object.Object, path...)
	if err != nil || !found {
		return err
	}
	pod := &corev1.PodSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, pod); err != nil {
		return err
	}
	pod.Volumes = append(without(pod.Volumes, func(v corev1.Volume) string { return v.Name }, gardenKubeconfigVolume),
		corev1.Volume{
			Name: gardenKubeconfigVolume,
			VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				SecretName: GardenKubeconfigSecret, DefaultMode: new(int32(0o444)),
			}},
		})
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			injectInto(&containers[i])
		}
	}
	if raw, err = runtime.DefaultUnstructuredConverter.ToUnstructured(pod); err != nil {
		return err
	}
	return unstructured.SetNestedMap(object.Object, raw, path...)
}

// injectInto gives one container the kubeconfig for the garden.
func injectInto(container *corev1.Container) {
	container.Env = append(without(container.Env, func(e corev1.EnvVar) string { return e.Name }, gardenKubeconfigEnv),
		corev1.EnvVar{Name: gardenKubeconfigEnv, Value: gardenKubeconfigFolder + "/" + kubeconfigKey})
	container.VolumeMounts = append(without(container.VolumeMounts, func(m corev1.VolumeMount) string { return m.Name },
		gardenKubeconfigVolume),
		corev1.VolumeMount{Name: gardenKubeconfigVolume, MountPath: gardenKubeconfigFolder, ReadOnly: true})
}

// without returns a list without the item of a name.
func without[T any](items []T, nameOf func(T) string, name string) []T {
	return slices.DeleteFunc(items, func(item T) bool { return nameOf(item) == name })
}
