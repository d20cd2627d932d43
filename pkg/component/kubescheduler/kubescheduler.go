// Package kubescheduler deploys the kube-scheduler of a control plane.
package kubescheduler

import (
	"context"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	// Name of the Deployment.
	Name             = "kube-scheduler"
	port       int32 = 10259
	mostMemory       = "2Gi"

	mount          = "/etc/kubernetes/scheduler"
	kubeconfigFile = mount + "/kubeconfig"
	configKey      = "config.yaml"
	configFile     = mount + "/" + configKey
)

// Profile is how pods are placed.
type Profile string

const (
	// Balanced spreads pods evenly over nodes, the default.
	Balanced Profile = "balanced"
	// BinPacking fills nodes one after another, so that others become empty and can be removed.
	BinPacking Profile = "bin-packing"
)

// Values of a kube-scheduler.
type Values struct {
	// Version is the Kubernetes version, e.g. "1.36.3".
	Version string
	// Image of kube-scheduler.
	Image string
	// Replicas; 0 for a hibernated control plane. With more than one they elect a leader.
	Replicas int32
	// PriorityClass of the pods.
	PriorityClass string
	// Availability of the control plane.
	Availability component.Availability `json:",omitzero"`
	// Profile defaults to Balanced.
	Profile Profile
	// FeatureGates are passed on.
	FeatureGates map[string]bool
	// ExtraArgs are flags without dashes; they replace flags of the same name.
	ExtraArgs map[string]string
}

// Labels are those of the pods.
func Labels() map[string]string { return component.Labels("kubernetes", "scheduler") }

// Decide makes the values of a cluster's kube-scheduler.
func Decide(f component.Facts) Values {
	values := Values{
		Version: f.KubernetesVersion, Image: f.Images[Name], Profile: Balanced,
		Replicas: f.Availability.Replicas(component.Pair), Availability: f.Availability, PriorityClass: f.PriorityClass,
	}
	if user := f.Kubernetes.KubeScheduler; user != nil {
		values.FeatureGates = user.FeatureGates
		values.Profile = Profile(ptr.Deref(user.Profile, gardencorev1beta1.SchedulingProfileBalanced))
	}
	return values
}

// New returns the component. The authorities must have been generated before Deploy.
func New(c client.Client, namespace string, manager secrets.Manager, values Values) component.Component {
	return &deployer{
		Part: component.Part{
			Client: c, Namespace: namespace, Name: Name, Labels: Labels(),
			Others: []client.Object{component.DisruptionBudget(namespace, Name, Labels())},
		},
		secrets: manager, values: values,
	}
}

type deployer struct {
	component.Part
	secrets secrets.Manager
	values  Values
}

// Deploy implements component.Deployer.
func (d *deployer) Deploy(ctx context.Context) error {
	kubeconfig, err := d.secrets.Generate(ctx, secrets.KubeconfigConfig{
		Name: Name, Server: kubeapiserver.LocalServer, User: "system:kube-scheduler",
	})
	if err != nil {
		return err
	}
	rendered, err := yaml.Marshal(configuration(d.values))
	if err != nil {
		return err
	}
	config, err := d.secrets.Generate(ctx,
		secrets.DataConfig{Name: Name + "-config", Data: map[string][]byte{configKey: rendered}})
	if err != nil {
		return err
	}
	return d.DeployElecting(ctx, d.values.Availability,
		deployment(d.Namespace, d.values, kubeconfig.Name, config.Name))
}

// Arguments returns the flags of kube-scheduler, sorted.
func Arguments(v Values) []string {
	flags := map[string]string{
		"config":                           configFile,
		"authentication-kubeconfig":        kubeconfigFile,
		"authorization-kubeconfig":         kubeconfigFile,
		"authorization-always-allow-paths": "/healthz,/livez,/readyz",
		"secure-port":                      strconv.Itoa(int(port)),
		"cert-dir":                         "",
	}
	if len(v.FeatureGates) > 0 {
		flags["feature-gates"] = component.Switches(v.FeatureGates)
	}
	maps.Copy(flags, v.ExtraArgs)
	return component.SortedFlags(flags)
}

func deployment(namespace string, v Values, kubeconfig, config string) *appsv1.Deployment {
	// It knows every pod and node of the cluster.
	resources := component.LimitMemory(component.Requests("5m", "60Mi"), mostMemory)
	return component.ControlPlaneDeployment(component.ControlPlaneDeploymentValues{
		Namespace: namespace,
		Name:      Name,
		Labels:    Labels(),
		Replicas:  v.Replicas,
		Image:     v.Image,
		Command:   []string{"/usr/local/bin/kube-scheduler"},
		Args:      Arguments(v),
		Env:       component.GarbageCollection(resources),
		Requests:  resources,
		Secrets: []component.SecretFiles{
			{Secret: kubeconfig, Files: map[string]string{secrets.DataKeyKubeconfig: "kubeconfig"}},
			{Secret: config, Files: map[string]string{configKey: configKey}},
		},
		MountPath: mount,
		Health:    component.SecureHealthz(port),
		ConnectsTo: []string{
			gardencorev1beta1.LabelNetworkPolicyToDNS, gardencorev1beta1.LabelNetworkPolicyToShootAPIServer,
		},
		PriorityClass: v.PriorityClass,
		Availability:  v.Availability,
	})
}
