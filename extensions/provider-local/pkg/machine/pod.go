package machine

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/apis"
)

const (
	// labelMachine is on all pods that are machines.
	labelMachine = "local.provider.extensions.gardener.cloud/machine"
	// Names of machines and classes may be longer than a label's value, so they are annotations.
	annotationMachine = "local.provider.extensions.gardener.cloud/machine-name"
	annotationClass   = "local.provider.extensions.gardener.cloud/machine-class"

	// bootPath is the program of machine images that prepares the pod and becomes systemd; see the folder machine of
	// this extension.
	bootPath = "/usr/local/sbin/machine-boot"
	// userDataDir is where machine images expect the file userdata.
	userDataDir = "/etc/machine"
	userDataKey = "userdata"

	// priorityClass is made by the chart of this extension.
	priorityClass = "local-machine"
)

// podName is the name of a machine's pod, and of the Secret with its user data.
func podName(machine string) string { return "machine-" + machine }

// podFor is the machine. Folders that must not lie on an overlay, or that outlive a reboot, are volumes.
func podFor(machine, class string, spec apis.MachineSpec) *corev1.Pod {
	memory := &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}
	disk := &corev1.EmptyDirVolumeSource{}
	volumes := []struct {
		name, path string
		source     *corev1.EmptyDirVolumeSource
	}{
		{"run", "/run", memory},
		{"tmp", "/tmp", memory},
		{"containerd", "/var/lib/containerd", disk},
		{"kubelet", "/var/lib/kubelet", disk},
		{"node-agent", "/var/lib/node-agent", disk},
		{"pod-logs", "/var/log/pods", disk},
	}
	name := podName(machine)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   spec.Namespace,
			Name:        name,
			Labels:      map[string]string{labelMachine: "true", "app": "machine"},
			Annotations: map[string]string{annotationMachine: machine, annotationClass: class},
		},
		Spec: corev1.PodSpec{
			Hostname:                     hostname(machine),
			PriorityClassName:            priorityClass,
			RestartPolicy:                corev1.RestartPolicyAlways,
			AutomountServiceAccountToken: new(false),
			EnableServiceLinks:           new(false),
			// Like a virtual machine that is deleted: nothing in it is waited for.
			TerminationGracePeriodSeconds: new(int64(0)),
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Affinity:                      apis.AtCloud(),
			Containers: []corev1.Container{{
				Name:            "machine",
				Image:           spec.Image,
				ImagePullPolicy: corev1.PullIfNotPresent,
				Command:         []string{bootPath},
				Env: []corev1.EnvVar{
					{Name: "container", Value: "trellis"},
					{Name: "MACHINE_NAME", Value: machine},
					{Name: "PROVIDER_ID", Value: providerID(spec.Namespace, machine)},
					{
						Name: "MACHINE_IP", ValueFrom: &corev1.EnvVarSource{
							FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"},
						},
					},
				},
				SecurityContext: &corev1.SecurityContext{Privileged: new(true)},
				// Everything in the machine shares this weight, kubelet and all pods.
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("60m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
				}},
				VolumeMounts: []corev1.VolumeMount{{Name: "userdata", MountPath: userDataDir, ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{{Name: "userdata", VolumeSource: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{SecretName: name, DefaultMode: new(int32(0o500))},
			}}},
		},
	}
	for _, volume := range volumes {
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts,
			corev1.VolumeMount{Name: volume.name, MountPath: volume.path})
		pod.Spec.Volumes = append(pod.Spec.Volumes,
			corev1.Volume{Name: volume.name, VolumeSource: corev1.VolumeSource{EmptyDir: volume.source}})
	}
	if spec.Memory != nil {
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env,
			corev1.EnvVar{Name: "MACHINE_MEMORY", Value: strconv.FormatInt(spec.Memory.Value(), 10)})
	}
	if spec.VolumesDir != "" {
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts,
			corev1.VolumeMount{Name: "volumes", MountPath: apis.MachineVolumesDir})
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "volumes", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: spec.VolumesDir, Type: new(corev1.HostPathDirectoryOrCreate)},
		}})
	}
	if len(spec.Nameservers) > 0 {
		pod.Spec.DNSPolicy = corev1.DNSNone
		pod.Spec.DNSConfig = &corev1.PodDNSConfig{
			Nameservers: spec.Nameservers,
			Options: []corev1.PodDNSConfigOption{
				{Name: "timeout", Value: new("1")}, {Name: "attempts", Value: new("5")},
			},
		}
	}
	return pod
}

// hostname fits into the 63 characters of a label; the end of the name is what tells machines apart.
func hostname(machine string) string {
	const limit = 63
	if len(machine) <= limit {
		return machine
	}
	cut := machine[len(machine)-limit:]
	for len(cut) > 0 && (cut[0] == '-' || cut[0] == '.') {
		cut = cut[1:]
	}
	return cut
}
