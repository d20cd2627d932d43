// Package clusterautoscaler deploys the cluster-autoscaler of a shoot: it runs beside the control plane, where the
// machines of the shoot are objects, and has a token for the shoot.
package clusterautoscaler

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/component/managedresources"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	// Name of the Deployment, of its service account in the seed, and of the one in the shoot.
	Name = "cluster-autoscaler"

	// shootResource is the ManagedResource with what belongs to it in the shoot.
	shootResource = "shoot-core-" + Name

	port int32 = 8085
)

// accessSecret holds the token for the shoot.
var accessSecret = component.ShootAccessSecret(Name)

// Values of a cluster-autoscaler.
type Values struct {
	// Image of cluster-autoscaler.
	Image string
	// PriorityClass of the pods.
	PriorityClass string
	// Availability of the control plane. In a highly available one, replicas elect a leader.
	Availability component.Availability `json:",omitzero"`
	// Kubeconfig is the name of the Secret with the kubeconfig that reads its token from component.ShootTokenFile.
	Kubeconfig string
	// MachineDeployments are the machines of the shoot, with their limits.
	MachineDeployments []extensionsv1alpha1.MachineDeployment
	// Config are the user's settings; nil leaves everything to the defaults.
	Config *gardencorev1beta1.ClusterAutoscaler
}

// Labels are those of the pods.
func Labels() map[string]string { return component.Labels("kubernetes", Name) }

// Decide makes the values of a cluster's cluster-autoscaler, but for its kubeconfig and the machines, which are known
// when the Worker is.
func Decide(f component.Facts) Values {
	return Values{
		Image: f.Images[Name], PriorityClass: f.PriorityClass, Availability: f.Availability,
		Config: f.Kubernetes.ClusterAutoscaler,
	}
}

// Machines tells which machines there are, with their limits.
type Machines func(context.Context) ([]extensionsv1alpha1.MachineDeployment, error)

// New returns the component, with a ManagedResource of what it may do in the shoot. Only Deploy asks for machines.
func New(c client.Client, namespace string, manager secrets.Manager, values Values,
	machines Machines) component.Component {
	return &deployer{
		Part: component.Part{
			Client: c, Namespace: namespace, Name: Name, Labels: Labels(),
			Others: append(access(namespace, values.Availability),
				&resourcesv1alpha1.ManagedResource{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: shootResource},
				},
				component.DisruptionBudget(namespace, Name, Labels()),
				&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name}},
			),
		},
		secrets: manager, values: values, machines: machines,
	}
}

type deployer struct {
	component.Part
	secrets  secrets.Manager
	values   Values
	machines Machines
}

// Deploy implements component.Deployer. It fails until there is a token: a pod that is started without it would be
// started again only much later.
func (d *deployer) Deploy(ctx context.Context) error {
	values, err := d.complete(ctx)
	if err != nil {
		return err
	}
	objects, err := shootObjects(values)
	if err != nil {
		return err
	}
	if err := managedresources.Deploy(ctx, d.Client, d.Namespace, shootResource, objects...); err != nil {
		return err
	}
	if err := component.Apply(ctx, d.Client, access(d.Namespace, values.Availability)...); err != nil {
		return err
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: d.Namespace, Name: accessSecret}
	if err := d.Client.Get(ctx, key, secret); err != nil {
		return fmt.Errorf("reading Secret %s: %w", key, err)
	}
	if len(secret.Data[resourcesv1alpha1.DataKeyToken]) == 0 {
		return fmt.Errorf("Secret %s has no token for the shoot; is resource-manager running?", key)
	}
	return d.DeployElecting(ctx, values.Availability, deployment(d.Namespace, values))
}

// complete adds to the values what was not known when they were decided.
func (d *deployer) complete(ctx context.Context) (Values, error) {
	values := d.values
	kubeconfig, found := d.secrets.Get(kubeapiserver.GenericTokenKubeconfigName)
	if !found {
		return values, fmt.Errorf("secret %q has not been generated; deploy kube-apiserver before %s",
			kubeapiserver.GenericTokenKubeconfigName, Name)
	}
	values.Kubeconfig = kubeconfig.Name
	var err error
	values.MachineDeployments, err = d.machines(ctx)
	return values, err
}

// WaitCleanup implements component.Waiter. The Secret with the objects of the shoot goes after these.
func (d *deployer) WaitCleanup(ctx context.Context) error {
	if err := d.Part.WaitCleanup(ctx); err != nil {
		return err
	}
	return managedresources.Remove(ctx, d.Client, d.Namespace, shootResource)
}

// access are the rights in the seed, and the request for a token in the shoot.
func access(namespace string, availability component.Availability) []client.Object {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: component.WithControlPlaneRole(Labels())}
	}
	token := &corev1.Secret{ObjectMeta: meta(accessSecret), Type: corev1.SecretTypeOpaque}
	component.RequestShootToken(token, Name)
	account := &corev1.ServiceAccount{ObjectMeta: meta(Name), AutomountServiceAccountToken: new(false)}
	return []client.Object{
		account,
		&rbacv1.Role{ObjectMeta: meta(Name), Rules: rules(availability)},
		&rbacv1.RoleBinding{
			ObjectMeta: meta(Name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: Name}},
		},
		token,
	}
}

// rules are the rights in the seed: to look at machines and to change how many there are, and to lead.
func rules(availability component.Availability) []rbacv1.PolicyRule {
	const machines, leases = "machine.sapcloud.io", "coordination.k8s.io"
	rules := []rbacv1.PolicyRule{
		{
			APIGroups: []string{machines}, Resources: []string{"machineclasses", "machines"},
			Verbs: []string{"get", "list", "watch"},
		},
		{
			APIGroups: []string{machines}, Resources: []string{"machinedeployments"},
			Verbs: []string{"get", "list", "patch", "watch"},
		},
	}
	if !availability.IsHigh() {
		return rules
	}
	return append(rules,
		// What is to be created has no name yet that a rule could give.
		rbacv1.PolicyRule{APIGroups: []string{leases}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{
			APIGroups: []string{leases}, Resources: []string{"leases"}, ResourceNames: []string{Name},
			Verbs: []string{"get", "update"},
		})
}

// mostMemory has room for the pods of some thousand nodes, all of which it reads.
const mostMemory = "4Gi"

func deployment(namespace string, v Values) *appsv1.Deployment {
	resources := component.Requests("5m", "40Mi")
	if v.Config != nil && v.Config.Autoscaling != nil {
		resources = component.AtLeast(resources, v.Config.Autoscaling.MinAllowed)
	}
	resources = component.LimitMemory(resources, mostMemory)
	result := component.ControlPlaneDeployment(component.ControlPlaneDeploymentValues{
		Namespace: namespace,
		Name:      Name,
		Labels:    Labels(),
		Replicas:  v.Availability.Replicas(component.Pair),
		Image:     v.Image,
		Args: slices.Concat(
			[]string{"--kubeconfig=" + component.ShootKubeconfigFile, "--namespace=" + namespace}, election(v),
			groups(namespace, v.MachineDeployments), arguments(v.Config),
		),
		Env:       component.GarbageCollection(resources),
		Requests:  resources,
		Secrets:   component.ShootAccessFiles(v.Kubeconfig, Name),
		MountPath: component.ShootAccessDir,
		Health: component.HealthEndpoint{
			Scheme: corev1.URISchemeHTTP, Port: port, Ready: "/healthz", Live: "/healthz",
		},
		Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
		ConnectsTo: []string{
			gardencorev1beta1.LabelNetworkPolicyToDNS, gardencorev1beta1.LabelNetworkPolicyToShootAPIServer,
			gardencorev1beta1.LabelNetworkPolicyToRuntimeAPIServer,
		},
		PriorityClass: v.PriorityClass,
		Availability:  v.Availability,
	})
	pod := &result.Spec.Template.Spec
	pod.ServiceAccountName, pod.AutomountServiceAccountToken = Name, new(true)
	return result
}

// election has replicas elect a leader, where there are several.
func election(v Values) []string {
	if !v.Availability.IsHigh() {
		return nil
	}
	return []string{"--leader-elect"}
}
