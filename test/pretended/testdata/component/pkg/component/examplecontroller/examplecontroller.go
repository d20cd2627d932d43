// Package examplecontroller deploys a controller of a control plane that nobody needs.
package examplecontroller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	// Name of the Deployment, and of the image.
	Name = "example-controller"

	port  = 10270
	mount = "/etc/kubernetes/example"
)

// Values of an example-controller.
type Values struct {
	Image         string
	Replicas      int32
	PriorityClass string
	// Availability of the control plane.
	Availability component.Availability `json:",omitzero"`
}

// Decide makes the values of a cluster's example-controller.
func Decide(f component.Facts) Values {
	return Values{
		Image: f.Images[Name], Replicas: f.Availability.Replicas(component.Pair), Availability: f.Availability,
		PriorityClass: f.PriorityClass,
	}
}

func labels() map[string]string { return component.Labels("example", "controller") }

// New returns the component.
func New(c client.Client, namespace string, manager secrets.Manager, values Values) component.Component {
	return &deployer{
		Part: component.Part{
			Client: c, Namespace: namespace, Name: Name, Labels: labels(),
			Others: []client.Object{component.DisruptionBudget(namespace, Name, labels())},
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
		Name: Name, Server: kubeapiserver.LocalServer, User: "trellis.garden:example-controller",
	})
	if err != nil {
		return err
	}
	return d.DeployElecting(ctx, d.values.Availability, deployment(d.Namespace, d.values, kubeconfig.Name))
}

func deployment(namespace string, v Values, kubeconfig string) *appsv1.Deployment {
	resources := component.LimitMemory(component.Requests("5m", "16Mi"), "256Mi")
	return component.ControlPlaneDeployment(component.ControlPlaneDeploymentValues{
		Namespace: namespace, Name: Name, Labels: labels(), Replicas: v.Replicas, Image: v.Image,
		Command: []string{"/usr/local/bin/example-controller"}, Args: []string{"--kubeconfig=" + mount + "/kubeconfig"},
		Env: component.GarbageCollection(resources), Requests: resources,
		Secrets: []component.SecretFiles{
			{Secret: kubeconfig, Files: map[string]string{secrets.DataKeyKubeconfig: "kubeconfig"}},
		},
		MountPath: mount, Health: component.SecureHealthz(port),
		ConnectsTo: []string{
			gardencorev1beta1.LabelNetworkPolicyToDNS, gardencorev1beta1.LabelNetworkPolicyToShootAPIServer,
		},
		PriorityClass: v.PriorityClass, Availability: v.Availability,
	})
}
