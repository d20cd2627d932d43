// Package apiserverproxy gives the pods of a shoot their API server: a proxy on every node holds the address behind the
// Service "kubernetes" on the loopback interface and forwards to the seed's gateway.
package apiserverproxy

import (
	"fmt"
	"net"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
)

const (
	// Name of the DaemonSet in kube-system.
	Name = "apiserver-proxy"
	// AdvertiseAddress is the address that kube-apiserver advertises in a shoot. It is of class E, so no network of
	// anybody has it.
	AdvertiseAddress = "240.0.0.1"

	healthPort int32 = 16910
)

// Values of apiserver-proxy.
type Values struct {
	// Image of vpn.
	Image string
	// AdvertiseAddress as given to kube-apiserver; default AdvertiseAddress.
	AdvertiseAddress string
	// Gateway is host:port of the gateway's PROXY protocol port.
	Gateway string
	// Authority is the name of the API server at the gateway: a host name of its TLSRoute.
	Authority string
}

// Decide makes the values of a cluster's apiserver-proxy.
func Decide(f component.Facts) Values {
	return Values{
		Image: f.Images["vpn"], AdvertiseAddress: f.AdvertiseAddress, Gateway: f.ProxyEndpoint, Authority: f.Hostname,
	}
}

// Objects returns the objects in the shoot.
func Objects(v Values) []client.Object {
	if v.AdvertiseAddress == "" {
		v.AdvertiseAddress = AdvertiseAddress
	}
	labels := component.SystemLabels(Name)
	meta := component.SystemMeta(Name, Name)
	return []client.Object{&appsv1.DaemonSet{
		ObjectMeta: meta,
		Spec: appsv1.DaemonSetSpec{
			RevisionHistoryLimit: new(int32(1)),
			Selector:             &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels},
				Spec: corev1.PodSpec{
					AutomountServiceAccountToken:  new(false),
					EnableServiceLinks:            new(false),
					PriorityClassName:             component.PriorityNodeCritical,
					Tolerations:                   component.TolerateEverything(),
					TerminationGracePeriodSeconds: new(int64(5)),
					HostNetwork:                   true,
					DNSPolicy:                     corev1.DNSDefault,
					Containers:                    []corev1.Container{container(v)},
				},
			},
		},
	}}
}

func container(v Values) corev1.Container {
	return corev1.Container{
		Name:            Name,
		Image:           v.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Args: []string{
			"apiserver-proxy",
			"--listen=" + net.JoinHostPort(v.AdvertiseAddress, strconv.Itoa(int(kubeapiserver.Port))),
			"--gateway=" + v.Gateway,
			"--authority=" + v.Authority,
			fmt.Sprintf("--health-address=:%d", healthPort),
		},
		SecurityContext: &corev1.SecurityContext{
			RunAsUser:                new(int64(0)),
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			Capabilities: &corev1.Capabilities{
				Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"NET_ADMIN", "NET_BIND_SERVICE"},
			},
		},
		Resources:                component.Requests("5m", "20Mi"),
		StartupProbe:             component.Healthz(healthPort).Startup(),
		ReadinessProbe:           component.Healthz(healthPort).Readiness(2),
		LivenessProbe:            component.Healthz(healthPort).Liveness(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}
