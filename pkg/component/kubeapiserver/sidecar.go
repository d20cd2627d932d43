package kubeapiserver

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	sidecarName    = "egress"
	sidecarMount   = "/etc/egress"
	sidecarProgram = "/usr/local/bin/vpn"
	// sidecarMemory is about twice what it takes with all connections that it has at a time.
	sidecarMemory = "128Mi"
)

// hasSidecar tells whether the process asks a webhook of its owner by itself, without regard to egress selectors:
// ImagePolicyWebhook makes its client of its kubeconfig and nothing else, so the proxy that is named there is the one
// way to lead it.
func hasSidecar(v Values) bool {
	return v.EgressHost != "" && slices.ContainsFunc(v.AdmissionConfigs, func(config AdmissionConfig) bool {
		return config.Name == imagePolicyWebhook && len(config.Kubeconfig) > 0
	})
}

// throughSidecar returns a kubeconfig with the sidecar as the proxy of all of its clusters, whatever it said. By HTTP
// CONNECT the way to the server is encrypted to its end, so the webhook's certificate is checked as before, and a
// client's certificate is for the webhook only.
func throughSidecar(kubeconfig []byte) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of admission plugin %s: %w", imagePolicyWebhook, err)
	}
	for _, cluster := range config.Clusters {
		cluster.ProxyURL = "http://" + egress.SidecarAddress
	}
	return clientcmd.Write(*config)
}

// addSidecar adds it to a pod. It starts before the process, and ends after it: else the process would be without its
// webhook until it has answered its last requests, which lets everything pass where the owner wants that.
func addSidecar(pod *corev1.PodSpec, v Values, mounted mountedSecrets) {
	if !hasSidecar(v) {
		return
	}
	resources := component.LimitMemory(component.Requests("5m", "20Mi"), sidecarMemory)
	pod.Volumes = append(pod.Volumes, component.ProjectedSecrets(sidecarName, component.SecretFiles{
		Secret: mounted.pki[folderEgressClient].Secret,
		Files: map[string]string{
			secrets.DataKeyCertificate: "tls.crt", secrets.DataKeyPrivateKey: "tls.key",
			secrets.DataKeyCertificateCA: "ca.crt",
		},
	}))
	pod.InitContainers = append(pod.InitContainers, corev1.Container{
		Name:                     sidecarName,
		Image:                    v.EgressImage,
		ImagePullPolicy:          corev1.PullIfNotPresent,
		RestartPolicy:            new(corev1.ContainerRestartPolicyAlways),
		Command:                  []string{sidecarProgram},
		Args:                     sidecarArguments(v),
		Env:                      component.GarbageCollection(resources),
		LivenessProbe:            sidecarProbe("egress-sidecar", "check", "--listen="+egress.SidecarAddress),
		Resources:                resources,
		SecurityContext:          component.HardenedContainer(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts:             []corev1.VolumeMount{{Name: sidecarName, MountPath: sidecarMount, ReadOnly: true}},
	})
}

func sidecarArguments(v Values) []string {
	return []string{
		"egress-sidecar",
		"--listen=" + egress.SidecarAddress,
		fmt.Sprintf("--proxy=%s:%d", v.EgressHost, egress.OutsidePort),
		"--tls-cert-file=" + sidecarMount + "/tls.crt",
		"--tls-key-file=" + sidecarMount + "/tls.key",
		"--ca-file=" + sidecarMount + "/ca.crt",
	}
}

// sidecarProbe runs in the container: nobody else reaches what listens within its pod.
func sidecarProbe(check ...string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{
			Command: append([]string{sidecarProgram}, check...),
		}},
		// A startup probe would hold kube-apiserver back.
		InitialDelaySeconds: 120,
		TimeoutSeconds:      10,
		PeriodSeconds:       30,
		SuccessThreshold:    1,
		FailureThreshold:    6,
	}
}
