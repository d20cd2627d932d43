// Package network is the controller of Networks of type flannel: it renders flannel and its CNI configuration for a
// shoot.
package network

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
)

// Config is spec.providerConfig of a Network, kind NetworkConfig of
// flannel.networking.extensions.trellis.garden/v1alpha1.
type Config struct {
	metav1.TypeMeta `json:",inline"`
	// Backend is vxlan (default) or host-gw.
	Backend Backend `json:"backend,omitempty"`
}

// Backend is how packets travel between nodes.
type Backend string

// Backends. BackendHostGW needs all nodes in one layer-2 network.
const (
	BackendVXLAN  Backend = "vxlan"
	BackendHostGW Backend = "host-gw"
)

// ParseConfig reads a provider configuration; none means the defaults.
func ParseConfig(raw []byte) (Config, error) {
	config := Config{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &config); err != nil {
			return Config{}, fmt.Errorf("spec.networking.providerConfig: %w", err)
		}
	}
	switch config.Backend {
	case "":
		config.Backend = BackendVXLAN
	case BackendVXLAN, BackendHostGW:
	default:
		return Config{}, fmt.Errorf("spec.networking.providerConfig.backend: %q is not supported; use %s or %s",
			config.Backend, BackendVXLAN, BackendHostGW)
	}
	return config, nil
}

// Values are what the objects depend on.
type Values struct {
	Config  Config
	PodCIDR string
	// APIServerHost is the name by which nodes reach their API server on port 443, also before services work.
	APIServerHost string
	FlannelImage  string
	PluginsImage  string
}

const (
	namespace = "kube-system"
	name      = "kube-flannel"
)

// Objects are what a shoot needs for flannel.
func Objects(values Values) ([]client.Object, error) {
	networkConfig, err := json.MarshalIndent(map[string]any{
		"Network": values.PodCIDR, "Backend": map[string]any{"Type": values.Config.Backend},
	}, "", "  ")
	if err != nil {
		return nil, err
	}
	labels := map[string]string{
		"app": "flannel", gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleSystemComponent,
	}
	metadata := metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels}
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metadata, AutomountServiceAccountToken: new(false)},
		&rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "trellis:flannel", Labels: labels},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}},
				{APIGroups: []string{""}, Resources: []string{"nodes", "nodes/status"}, Verbs: []string{"patch"}},
			},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "trellis:flannel", Labels: labels},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "trellis:flannel"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		},
		&corev1.ConfigMap{
			ObjectMeta: metadata, Data: map[string]string{
				"net-conf.json": string(networkConfig), "cni-conf.json": cniConfig,
			},
		},
		daemonSet(metadata, values),
	}, nil
}

const cniConfig = `{
  "name": "cbr0",
  "cniVersion": "1.0.0",
  "plugins": [
    {"type": "flannel", "delegate": {"hairpinMode": true, "isDefaultGateway": true}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`

func daemonSet(metadata metav1.ObjectMeta, values Values) *appsv1.DaemonSet {
	selector := map[string]string{"app": "flannel"}
	return &appsv1.DaemonSet{
		ObjectMeta: metadata,
		Spec: appsv1.DaemonSetSpec{
			Selector:       &metav1.LabelSelector{MatchLabels: selector},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: metadata.Labels},
				Spec: corev1.PodSpec{
					HostNetwork: true,
					SecurityContext: &corev1.PodSecurityContext{
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
					DNSPolicy:                     corev1.DNSDefault,
					PriorityClassName:             "system-node-critical",
					ServiceAccountName:            name,
					AutomountServiceAccountToken:  new(true),
					TerminationGracePeriodSeconds: new(int64(5)),
					Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
					InitContainers:                []corev1.Container{installPlugins(values)},
					Containers:                    []corev1.Container{flanneld(values)},
					Volumes: []corev1.Volume{
						hostPath("run", "/run/flannel"), hostPath("cni-bin", "/opt/cni/bin"),
						hostPath("cni-config", "/etc/cni/net.d"), hostPath("xtables-lock", "/run/xtables.lock"),
						{
							Name: "config", VolumeSource: corev1.VolumeSource{
								ConfigMap: &corev1.ConfigMapVolumeSource{
									LocalObjectReference: corev1.LocalObjectReference{Name: name},
								},
							},
						},
					},
				},
			},
		},
	}
}

func hostPath(volume, path string) corev1.Volume {
	kind := corev1.HostPathDirectoryOrCreate
	if volume == "xtables-lock" {
		kind = corev1.HostPathFileOrCreate
	}
	return corev1.Volume{
		Name: volume, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind},
		},
	}
}

func installPlugins(values Values) corev1.Container {
	return corev1.Container{
		Name: "install-plugins", Image: values.PluginsImage, Args: []string{"/host/opt/cni/bin"},
		SecurityContext: rootWith(),
		VolumeMounts:    []corev1.VolumeMount{{Name: "cni-bin", MountPath: "/host/opt/cni/bin"}},
	}
}

// installConfig gives the node its CNI configuration, and by that makes it Ready, once flanneld has written what the
// plugin reads. Pods that were started before would fail and wait long for their next attempt.
const installConfig = `until [ -s /run/flannel/subnet.env ]; do sleep 0.1; done
cp /etc/kube-flannel/cni-conf.json /etc/cni/net.d/.new && mv /etc/cni/net.d/.new /etc/cni/net.d/10-flannel.conflist`

func flanneld(values Values) corev1.Container {
	return corev1.Container{
		Name: "kube-flannel", Image: values.FlannelImage, Args: []string{"--ip-masq", "--kube-subnet-mgr"},
		Env: []corev1.EnvVar{
			{Name: "POD_NAME", ValueFrom: fieldRef("metadata.name")},
			{Name: "POD_NAMESPACE", ValueFrom: fieldRef("metadata.namespace")},
			{Name: "NODE_NAME", ValueFrom: fieldRef("spec.nodeName")},
			{Name: "KUBERNETES_SERVICE_HOST", Value: values.APIServerHost},
			{Name: "KUBERNETES_SERVICE_PORT", Value: "443"},
		},
		Lifecycle: &corev1.Lifecycle{
			PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", installConfig}}},
		},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("40Mi"),
			},
		},
		SecurityContext: rootWith("NET_ADMIN", "NET_RAW"),
		VolumeMounts: []corev1.VolumeMount{
			{Name: "run", MountPath: "/run/flannel"}, {Name: "config", MountPath: "/etc/kube-flannel"},
			{Name: "xtables-lock", MountPath: "/run/xtables.lock"},
			{Name: "cni-config", MountPath: "/etc/cni/net.d"},
		},
	}
}

// rootWith is root, whom the folders of the node belong to, with no more than the given capabilities. What it writes
// lies in volumes.
func rootWith(capabilities ...corev1.Capability) *corev1.SecurityContext {
	context := component.HardenedContainer()
	context.RunAsUser, context.Capabilities.Add = new(int64(0)), capabilities
	return context
}

func fieldRef(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}
