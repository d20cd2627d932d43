// Package kubeproxy runs kube-proxy on every node of a shoot.
package kubeproxy

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdlatest "k8s.io/client-go/tools/clientcmd/api/latest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	// Name of the DaemonSet in kube-system.
	Name = "kube-proxy"

	mount            = "/etc/kube-proxy"
	healthPort int32 = 10256
)

// Values of kube-proxy.
type Values struct {
	// Image of kube-proxy, in the version of the nodes.
	Image string
	// PodNetworks are the CIDRs of pods.
	PodNetworks []string
	// Server is the URL of the API server that nodes use, by its external name: the Service "kubernetes" needs
	// kube-proxy to work.
	Server string
	// CABundle is the CA of the server, PEM.
	CABundle []byte
	// Mode is how services are implemented; iptables if it is empty.
	Mode gardencorev1beta1.ProxyMode
	// FeatureGates of the user.
	FeatureGates map[string]bool
}

// modes are kube-proxy's own words for the modes.
var modes = map[gardencorev1beta1.ProxyMode]string{
	"":                                  "iptables",
	gardencorev1beta1.ProxyModeIPTables: "iptables",
	gardencorev1beta1.ProxyModeIPVS:     "ipvs",
	gardencorev1beta1.ProxyModeNFTables: "nftables",
}

// Decide makes the values of a cluster's kube-proxy, but CABundle.
func Decide(f component.Facts) Values {
	values := Values{Image: f.Images[Name], PodNetworks: f.PodNetworks, Server: "https://" + f.Hostname}
	if user := f.Kubernetes.KubeProxy; user != nil {
		values.Mode, values.FeatureGates = ptr.Deref(user.Mode, ""), user.FeatureGates
	}
	return values
}

// WithKeys adds the certificates that are known when the cluster has its secrets.
func (v Values) WithKeys(_ context.Context, manager secrets.Manager) (Values, error) {
	var err error
	v.CABundle, err = component.CABundleData(manager, component.CACluster)
	return v, err
}

// Objects returns the objects in the shoot.
func Objects(v Values) ([]client.Object, error) {
	files, err := configuration(v)
	if err != nil {
		return nil, fmt.Errorf("kube-proxy: %w", err)
	}
	config := component.UniqueConfigMap(Name+"-config", Name, files)
	meta := component.SystemMeta(Name, Name)
	return []client.Object{
		config,
		&corev1.ServiceAccount{ObjectMeta: meta, AutomountServiceAccountToken: new(false)},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "gardener.cloud:target:node-proxier", Labels: meta.Labels},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-proxier"},
			Subjects: []rbacv1.Subject{
				{Kind: rbacv1.ServiceAccountKind, Name: Name, Namespace: metav1.NamespaceSystem},
			},
		},
		daemonSet(v, config.Name),
	}, nil
}

func configuration(v Values) (map[string]string, error) {
	kubeconfig, err := runtime.Encode(clientcmdlatest.Codec, &clientcmdv1.Config{
		CurrentContext: "shoot",
		Clusters: []clientcmdv1.NamedCluster{{
			Name: "shoot", Cluster: clientcmdv1.Cluster{Server: v.Server, CertificateAuthorityData: v.CABundle},
		}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{
			Name: "shoot", AuthInfo: clientcmdv1.AuthInfo{
				TokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token",
			},
		}},
		Contexts: []clientcmdv1.NamedContext{
			{Name: "shoot", Context: clientcmdv1.Context{Cluster: "shoot", AuthInfo: "shoot"}},
		},
	})
	if err != nil {
		return nil, err
	}
	mode, known := modes[v.Mode]
	if !known {
		return nil, fmt.Errorf("mode %q is unknown", v.Mode)
	}
	fields := map[string]any{
		"apiVersion":         "kubeproxy.config.k8s.io/v1alpha1",
		"kind":               "KubeProxyConfiguration",
		"mode":               mode,
		"clusterCIDR":        strings.Join(v.PodNetworks, ","),
		"clientConnection":   map[string]any{"kubeconfig": mount + "/kubeconfig"},
		"healthzBindAddress": fmt.Sprintf("0.0.0.0:%d", healthPort),
		"metricsBindAddress": "127.0.0.1:10249",
		// The host's limits stay as they are: a node may be a container that cannot change them.
		"conntrack": map[string]any{
			"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
			"udpTimeout": "0s", "udpStreamTimeout": "0s",
		},
		mode: map[string]any{"minSyncPeriod": "100ms", "syncPeriod": "30s"},
	}
	if len(v.FeatureGates) > 0 {
		fields["featureGates"] = v.FeatureGates
	}
	config, err := yaml.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return map[string]string{"config.yaml": string(config), "kubeconfig": string(kubeconfig)}, nil
}

func daemonSet(v Values, config string) *appsv1.DaemonSet {
	labels := component.SystemLabels(Name)
	meta := component.SystemMeta(Name, Name)
	return &appsv1.DaemonSet{
		ObjectMeta: meta,
		Spec: appsv1.DaemonSetSpec{
			RevisionHistoryLimit: new(int32(1)),
			Selector:             &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels},
				Spec: corev1.PodSpec{
					ServiceAccountName:            Name,
					AutomountServiceAccountToken:  new(true),
					EnableServiceLinks:            new(false),
					PriorityClassName:             component.PriorityNodeCritical,
					Tolerations:                   component.TolerateEverything(),
					TerminationGracePeriodSeconds: new(int64(5)),
					HostNetwork:                   true,
					DNSPolicy:                     corev1.DNSDefault,
					Volumes: []corev1.Volume{
						{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
							LocalObjectReference: corev1.LocalObjectReference{Name: config},
						}}},
						{Name: "xtables-lock", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
							Path: "/run/xtables.lock", Type: new(corev1.HostPathFileOrCreate),
						}}},
					},
					Containers: []corev1.Container{container(v)},
				},
			},
		},
	}
}

func container(v Values) corev1.Container {
	health := component.HealthEndpoint{Scheme: corev1.URISchemeHTTP, Port: healthPort, Ready: "/healthz"}
	return corev1.Container{
		Name:            Name,
		Image:           v.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{"/usr/local/bin/kube-proxy"},
		Args:            []string{"--config=" + mount + "/config.yaml", "--hostname-override=$(NODE_NAME)"},
		Env: []corev1.EnvVar{
			{
				Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{
					FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "spec.nodeName"},
				},
			},
			{Name: "GOGC", Value: "50"},
		},
		SecurityContext:          &corev1.SecurityContext{Privileged: new(true)},
		Resources:                component.Requests("5m", "30Mi"),
		ReadinessProbe:           health.Readiness(5),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", MountPath: mount, ReadOnly: true},
			{Name: "xtables-lock", MountPath: "/run/xtables.lock"},
		},
	}
}
