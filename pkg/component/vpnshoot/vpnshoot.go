// Package vpnshoot is the shoot's ends of its tunnels: Deployments in the shoot that dial the seed's gateway.
package vpnshoot

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/vpnseedserver"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	// Name of the first path's Deployment in kube-system.
	Name = "vpn-shoot"

	healthPort int32 = 8080
	mount            = "/etc/vpn"
)

// Values of vpn-shoot.
type Values struct {
	// Image of vpn.
	Image string
	// Endpoint is host:port of the gateway's WireGuard port.
	Endpoint string
	// Keys are those of the first path.
	Keys
	// Second are the keys of the second path; nil if there is none.
	Second *Keys `json:",omitempty"`
}

// Keys of the shoot's end of a path, in base64; vpnseedserver.ShootKeys returns them.
type Keys struct{ PrivateKey, SeedPublicKey []byte }

// Decide makes the values of a cluster's ends of its tunnels, without keys.
func Decide(f component.Facts) Values {
	v := Values{Image: f.Images["vpn"], Endpoint: f.TunnelEndpoint}
	if f.Availability.IsHigh() {
		v.Second = &Keys{}
	}
	return v
}

// WithKeys adds the keys of the tunnels.
func (v Values) WithKeys(ctx context.Context, manager secrets.Manager) (Values, error) {
	var err error
	if v.Keys, err = keysOf(ctx, manager, vpnseedserver.First); err != nil || v.Second == nil {
		return v, err
	}
	second, err := keysOf(ctx, manager, vpnseedserver.Second)
	v.Second = &second
	return v, err
}

func keysOf(ctx context.Context, manager secrets.Manager, path vpnseedserver.Path) (keys Keys, err error) {
	keys.PrivateKey, keys.SeedPublicKey, err = vpnseedserver.ShootKeys(ctx, manager, path)
	return keys, err
}

// Objects returns the objects in the shoot.
func Objects(v Values) []client.Object {
	objects := endOf(v, vpnseedserver.First, v.Keys)
	if v.Second != nil {
		objects = append(objects, endOf(v, vpnseedserver.Second, *v.Second)...)
	}
	return objects
}

// endOf a path. No other one's keys are in its pods.
func endOf(v Values, path vpnseedserver.Path, own Keys) []client.Object {
	name := path.Named(Name)
	keys := component.UniqueSecret(name, name,
		map[string][]byte{"private-key": own.PrivateKey, "peer-public-key": own.SeedPublicKey})
	end := deployment(v, name, keys.Name)
	if path != vpnseedserver.First {
		// The first says nothing of it, and so stays as it is when a second one comes.
		end.Spec.Template.Spec.Affinity = component.PreferApart(component.SystemLabels(Name))
	}
	return []client.Object{keys, end}
}

func deployment(v Values, name, keys string) *appsv1.Deployment {
	labels := component.SystemLabels(name)
	meta := component.SystemMeta(name, name)
	return &appsv1.Deployment{
		ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{
			Replicas:             new(int32(1)),
			RevisionHistoryLimit: new(int32(1)),
			Selector:             &metav1.LabelSelector{MatchLabels: labels},
			// Two pods with one key would take the tunnel from each other.
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels},
				Spec: corev1.PodSpec{
					AutomountServiceAccountToken:  new(false),
					EnableServiceLinks:            new(false),
					PriorityClassName:             component.PriorityClusterCritical,
					Tolerations:                   component.TolerateEverything(),
					TerminationGracePeriodSeconds: new(int64(5)),
					// The way to the cluster's DNS must not be needed to make the way into the cluster.
					DNSPolicy: corev1.DNSDefault,
					Volumes: []corev1.Volume{component.ProjectedSecrets("keys", component.SecretFiles{
						Secret: keys, Files: map[string]string{
							"private-key": "private-key", "peer-public-key": "peer-public-key",
						},
					})},
					Containers: []corev1.Container{container(v)},
				},
			},
		},
	}
}

func container(v Values) corev1.Container {
	return corev1.Container{
		Name:            Name,
		Image:           v.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Args: []string{
			"shoot-client",
			"--endpoint=" + v.Endpoint,
			"--private-key-file=" + mount + "/private-key",
			"--peer-public-key-file=" + mount + "/peer-public-key",
			"--health-address=:8080",
		},
		// It makes a network interface, forwards and masquerades, in the pod's own network.
		SecurityContext:          &corev1.SecurityContext{Privileged: new(true)},
		Resources:                component.Requests("5m", "20Mi"),
		StartupProbe:             component.Healthz(healthPort).Startup(),
		ReadinessProbe:           component.Healthz(healthPort).Readiness(2),
		LivenessProbe:            component.Healthz(healthPort).Liveness(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts:             []corev1.VolumeMount{{Name: "keys", MountPath: mount, ReadOnly: true}},
	}
}
