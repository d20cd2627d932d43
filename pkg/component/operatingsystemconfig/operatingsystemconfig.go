// Package operatingsystemconfig says what a worker machine runs besides pods: the user data of its first boot and the
// files and systemd units that node-agent keeps afterwards. Both are pure functions of Values; what depends on the
// operating system or the provider (containerd's configuration, cgroup roots) is added by the extension and the machine
// image, for the kubelet through KUBELET_EXTRA_ARGS in /etc/default/kubelet.
package operatingsystemconfig

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// Paths on the machine. The kubeconfigs are written by node-agent (bootstrap) and the kubelet itself.
const (
	// PathNodeAgentConfig tells node-agent who it is and where its cluster is.
	PathNodeAgentConfig = "/var/lib/node-agent/config.yaml"
	// PathClusterCA holds what a kubelet that stays with its machine is to verify the API server with after a rotation.
	PathClusterCA = "/var/lib/node-agent/cluster-ca.crt"
	// PathKubelet is the kubelet's binary.
	PathKubelet = "/opt/bin/kubelet"
	// PathKubeletConfig is the kubelet's configuration file.
	PathKubeletConfig = "/var/lib/kubelet/config/kubelet"
	// PathKubeletCA holds the CA of clients of the kubelet: kube-apiserver.
	PathKubeletCA = "/var/lib/kubelet/ca.crt"
	// PathBootstrapKubeconfig and PathKubeconfig are the kubelet's credentials before and after it joined.
	PathBootstrapKubeconfig = "/var/lib/kubelet/kubeconfig-bootstrap"
	PathKubeconfig          = "/var/lib/kubelet/kubeconfig-real"
	// PathKubeletEnvironment may set KUBELET_EXTRA_ARGS.
	PathKubeletEnvironment = "/etc/default/kubelet"
	// PathSysctl holds the pool's kernel settings.
	PathSysctl = "/etc/sysctl.d/99-k8s-general.conf"

	// pathKubeletInImage is where the kubelet is in its image.
	pathKubeletInImage = "/usr/local/bin/kubelet"
)

// Names of units.
const (
	UnitKubelet   = "kubelet.service"
	UnitNodeAgent = "node-agent.service"
	unitSysctl    = "kernel-settings.service"
)

// Values of one worker pool.
type Values struct {
	// PoolName is the name of the worker pool.
	PoolName string
	// KubernetesVersion of the pool's kubelets, without "v".
	KubernetesVersion string
	// KubeletImage holds the kubelet at /usr/local/bin/kubelet.
	KubeletImage string
	// APIServerURL is where machines reach the API server.
	APIServerURL string
	// CABundle (PEM) verifies the API server, KubeletCABundle (PEM) its client certificate at the kubelet.
	CABundle, KubeletCABundle []byte
	// SecretName is the Secret in the cluster's kube-system that node-agent reads.
	SecretName string
	// ClusterDNS are the addresses of the cluster's DNS service, ClusterDomain its domain.
	ClusterDNS    []string
	ClusterDomain string
	// Kubelet are the user's settings; may be nil.
	Kubelet *gardencorev1beta1.KubeletConfig
	// Labels and Taints that nodes register with.
	Labels map[string]string
	Taints []corev1.Taint
	// SystemComponents says whether system pods may run on the pool.
	SystemComponents bool
	// InPlace says that machines of the pool are updated, and not replaced.
	InPlace bool
	// Sysctls are kernel settings of the user.
	Sysctls map[string]string
	// TrustedCertificates (PEM) are trusted by the machines beside those of the operating system.
	TrustedCertificates string
	// AuthorizedKeys are the public keys that may log in by SSH; without any the machines have no SSH.
	AuthorizedKeys []string
}

// Provision returns the units and files of the first boot: node-agent's configuration and its start.
func Provision(v Values) ([]extensionsv1alpha1.Unit, []extensionsv1alpha1.File, error) {
	config, err := nodeAgentConfig(v)
	if err != nil {
		return nil, nil, err
	}
	units := []extensionsv1alpha1.Unit{{
		Name: UnitNodeAgent, Enable: new(true), Command: new(extensionsv1alpha1.CommandStart),
		FilePaths: []string{PathNodeAgentConfig},
	}}
	files := []extensionsv1alpha1.File{{
		Path: PathNodeAgentConfig, Permissions: new(int32(0o600)),
		// The placeholders must stay legible in the user data, or they would not be replaced.
		Content: extensionsv1alpha1.FileContent{
			Inline: &extensionsv1alpha1.FileContentInline{Data: config}, TransmitUnencoded: new(true),
		},
	}}
	return units, files, nil
}

// nodeAgentConfig is the content of PathNodeAgentConfig.
func nodeAgentConfig(v Values) (string, error) {
	type apiServer struct {
		Server   string `json:"server"`
		CABundle string `json:"caBundle"`
	}
	data, err := yaml.Marshal(struct {
		APIServer      apiServer `json:"apiServer"`
		BootstrapToken string    `json:"bootstrapToken"`
		SecretName     string    `json:"operatingSystemConfigSecretName"`
		MachineName    string    `json:"machineName"`
	}{
		APIServer:      apiServer{Server: v.APIServerURL, CABundle: base64.StdEncoding.EncodeToString(v.CABundle)},
		BootstrapToken: extensionsv1alpha1.BootstrapTokenPlaceholder,
		SecretName:     v.SecretName,
		MachineName:    extensionsv1alpha1.MachineNamePlaceholder,
	})
	return string(data), err
}

// Reconcile returns the units and files that node-agent keeps: the kubelet, its configuration, kernel settings, trusted
// certificates and access by SSH.
func Reconcile(v Values) ([]extensionsv1alpha1.Unit, []extensionsv1alpha1.File, error) {
	config, err := kubeletConfig(v)
	if err != nil {
		return nil, nil, err
	}
	trustUnit, trustFiles := trust(v.TrustedCertificates)
	sshUnit, sshFiles := sshAccess(v.AuthorizedKeys)
	units := []extensionsv1alpha1.Unit{
		// First, as images may come from where the certificates are needed.
		trustUnit,
		{
			Name: unitSysctl, Enable: new(true), Command: new(extensionsv1alpha1.CommandRestart),
			Content:   new(sysctlUnit),
			FilePaths: []string{PathSysctl},
		},
		{
			Name: UnitKubelet, Enable: new(true), Command: new(extensionsv1alpha1.CommandStart),
			Content:   new(kubeletUnit(v)),
			FilePaths: []string{PathKubelet, PathKubeletConfig, PathKubeletCA},
		},
		sshUnit,
	}
	files := []extensionsv1alpha1.File{
		plain(PathSysctl, 0o644, sysctls(v.Sysctls)),
		encoded(PathKubeletCA, 0o644, v.KubeletCABundle),
		encoded(PathKubeletConfig, 0o644, config),
		{
			Path: PathKubelet, Permissions: new(int32(0o755)),
			Content: extensionsv1alpha1.FileContent{ImageRef: &extensionsv1alpha1.FileContentImageRef{
				Image: v.KubeletImage, FilePathInImage: pathKubeletInImage,
			}},
		},
	}
	if v.InPlace {
		files = append(files, encoded(PathClusterCA, 0o644, v.CABundle))
	}
	return units, slices.Concat(files, trustFiles, sshFiles), nil
}

// CRI is the configuration of the container runtime of the pool.
func CRI(sandboxImage string) *extensionsv1alpha1.CRIConfig {
	return &extensionsv1alpha1.CRIConfig{
		Name:         extensionsv1alpha1.CRINameContainerD,
		CgroupDriver: new(extensionsv1alpha1.CgroupDriverCgroupfs),
		Containerd:   &extensionsv1alpha1.ContainerdConfig{SandboxImage: sandboxImage},
	}
}

// sysctlUnit applies PathSysctl alone: what else the operating system would set is its own affair. A setting that the
// kernel refuses must not keep the kubelet from starting.
const sysctlUnit = `[Unit]
Description=Kernel settings of the worker pool
Before=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=-/lib/systemd/systemd-sysctl ` + PathSysctl + `

[Install]
WantedBy=multi-user.target
`

// kubeletUnit is the kubelet's systemd unit. Restart without a limit: a kubelet that cannot reach its API server at
// boot must still come up when it can.
func kubeletUnit(v Values) string {
	return `[Unit]
Description=kubelet: the Kubernetes node agent
Documentation=https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/
Wants=containerd.service
After=containerd.service
StartLimitIntervalSec=0

[Service]
EnvironmentFile=-` + PathKubeletEnvironment + `
ExecStart=` + PathKubelet + ` \
    --config=` + PathKubeletConfig + ` \
    --bootstrap-kubeconfig=` + PathBootstrapKubeconfig + ` \
    --kubeconfig=` + PathKubeconfig + ` \
    --node-labels=` + nodeLabels(v) + ` \
    $KUBELET_EXTRA_ARGS
Restart=always
RestartSec=1
CPUAccounting=true
MemoryAccounting=true

[Install]
WantedBy=multi-user.target
`
}

// sysctls renders the settings that Kubernetes needs of every node, then those of the user. A leading dash lets the
// kernel lack a setting: bridges without netfilter are fine where no bridge carries pod traffic.
func sysctls(user map[string]string) string {
	var b strings.Builder
	b.WriteString("net.ipv4.ip_forward = 1\n-net.bridge.bridge-nf-call-iptables = 1\n" +
		"-net.bridge.bridge-nf-call-ip6tables = 1\n")
	for _, key := range slices.Sorted(maps.Keys(user)) {
		fmt.Fprintf(&b, "%s = %s\n", key, user[key])
	}
	return b.String()
}

// plain is a file with legible content.
func plain(path string, mode int32, content string) extensionsv1alpha1.File {
	return extensionsv1alpha1.File{Path: path, Permissions: &mode, Content: extensionsv1alpha1.FileContent{
		Inline: &extensionsv1alpha1.FileContentInline{Data: content},
	}}
}

// encoded is a file whose content is transmitted in base64.
func encoded(path string, mode int32, content []byte) extensionsv1alpha1.File {
	return extensionsv1alpha1.File{Path: path, Permissions: &mode, Content: extensionsv1alpha1.FileContent{
		Inline: &extensionsv1alpha1.FileContentInline{
			Encoding: "b64", Data: base64.StdEncoding.EncodeToString(content),
		},
	}}
}
