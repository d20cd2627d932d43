package kubeapiserver

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiserverv1beta1 "k8s.io/apiserver/pkg/apis/apiserver/v1beta1"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	pathsName  = "paths"
	pathsMount = "/etc/vpn"
	// pathsSocketName is the volume of the socket, which the process and the sidecar share.
	pathsSocketName  = "paths-socket"
	pathsSocketMount = "/run/vpn"
	pathsSocket      = pathsSocketMount + "/paths.sock"
	// pathsMemory has room for as many connections as a vpn-seed-server has.
	pathsMemory = "1Gi"
)

// hasPaths tells whether a sidecar chooses the way into the cluster's networks.
func hasPaths(v Values) bool { return v.VPN != nil && len(v.VPN.Paths) > 1 }

// throughPaths is a connection through that sidecar. It is a socket, as an egress selector has TLS wherever it connects
// by TCP, and only containers that mount it can connect.
func throughPaths() apiserverv1beta1.Connection {
	return apiserverv1beta1.Connection{
		ProxyProtocol: apiserverv1beta1.ProtocolHTTPConnect,
		Transport:     &apiserverv1beta1.Transport{UDS: &apiserverv1beta1.UDSTransport{UDSName: pathsSocket}},
	}
}

// addPaths adds the sidecar to a pod. It starts before the process, and ends after it.
func addPaths(pod *corev1.PodSpec, v Values, mounted mountedSecrets) {
	if !hasPaths(v) {
		return
	}
	resources := component.LimitMemory(component.Requests("5m", "20Mi"), pathsMemory)
	pod.Volumes = append(pod.Volumes,
		component.ProjectedSecrets(pathsName,
			component.SecretFiles{
				Secret: mounted.pki[folderVPNClient].Secret,
				Files: map[string]string{
					secrets.DataKeyCertificate: "tls.crt", secrets.DataKeyPrivateKey: "tls.key",
				},
			},
			component.SecretFiles{
				Secret: mounted.pki[component.CAVPN].Secret,
				Files:  map[string]string{secrets.DataKeyCertificateBundle: "bundle.crt"},
			}),
		corev1.Volume{Name: pathsSocketName, VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory},
		}})
	process := &pod.Containers[0]
	process.VolumeMounts = append(process.VolumeMounts,
		corev1.VolumeMount{Name: pathsSocketName, MountPath: pathsSocketMount, ReadOnly: true})
	pod.InitContainers = append(pod.InitContainers, corev1.Container{
		Name:                     pathsName,
		Image:                    v.EgressImage,
		ImagePullPolicy:          corev1.PullIfNotPresent,
		RestartPolicy:            new(corev1.ContainerRestartPolicyAlways),
		Command:                  []string{sidecarProgram},
		Args:                     pathsArguments(v),
		Env:                      component.GarbageCollection(resources),
		LivenessProbe:            sidecarProbe("path-sidecar", "check", "--socket="+pathsSocket),
		Resources:                resources,
		SecurityContext:          component.HardenedContainer(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts: []corev1.VolumeMount{
			{Name: pathsName, MountPath: pathsMount, ReadOnly: true},
			{Name: pathsSocketName, MountPath: pathsSocketMount},
		},
	})
}

func pathsArguments(v Values) []string {
	return []string{
		"path-sidecar",
		"--socket=" + pathsSocket,
		"--proxies=" + strings.Join(v.VPN.Paths, ","),
		"--tls-cert-file=" + pathsMount + "/tls.crt",
		"--tls-key-file=" + pathsMount + "/tls.key",
		"--ca-file=" + pathsMount + "/bundle.crt",
	}
}
