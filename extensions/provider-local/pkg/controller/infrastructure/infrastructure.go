// Package infrastructure is the Infrastructure controller of provider-local: a network for the machines, made by
// Terraform, and the right of the machine driver to make them, as pods, in the namespace that gardenlet makes for them.
package infrastructure

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/pkg/terraform"
	"github.com/trellis-garden/trellis/extensions/pkg/worker"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/apis"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/credentials"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/terraformprovider"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// Options of the controller.
type Options struct {
	Credentials credentials.Source
	// Nameservers are for the machines.
	Nameservers []string
	// Terraform says where the program and its providers are; empty means the places in the image.
	Terraform terraform.Options
}

// Add registers the controller.
func Add(mgr manager.Manager, options Options) error {
	return extension.Add(mgr, extension.Options[*extensionsv1alpha1.Infrastructure]{
		Kind:     extensionsv1alpha1.InfrastructureResource,
		Type:     apis.Type,
		Actuator: &actuator{options: options, client: mgr.GetClient(), nodes: mgr.GetAPIReader()},
		// Each runs a terraform; more at a time would not be faster.
		MaxConcurrentReconciles: 5,
	})
}

type actuator struct {
	options Options
	client  client.Client
	// nodes reads those of the seed.
	nodes client.Reader
}

const (
	pollInterval    = 200 * time.Millisecond
	machinesTimeout = 3 * time.Minute
)

// Namespace is where the machines of a shoot are. gardenlet makes it, as the chart of this extension asks for.
func Namespace(technicalID string) string { return "infra-" + technicalID }

// Reconcile implements extension.Actuator.
func (a *actuator) Reconcile(ctx context.Context, log logr.Logger, infrastructure *extensionsv1alpha1.Infrastructure,
	shoot *cluster.Cluster) error {
	configuration, err := a.configuration(infrastructure, shoot)
	if err != nil {
		return extension.WithCodes(err, gardencorev1beta1.ErrorConfigurationProblem)
	}
	if err := a.refuseWithinMachines(ctx); err != nil {
		return err
	}
	if err := a.letMachinesIn(ctx, infrastructure.Namespace); err != nil {
		return err
	}
	runner, err := a.runner(ctx, log, infrastructure)
	if err != nil {
		return err
	}
	started := time.Now()
	outputs, err := runner.Apply(ctx, configuration)
	if err != nil {
		return api.WithCodes(err)
	}
	log.Info("terraform applied", "seconds", time.Since(started).Seconds())
	if err := a.keepState(ctx, runner, infrastructure); err != nil {
		return err
	}
	return a.setStatus(infrastructure, outputs)
}

// keepState puts Terraform's state where gardenlet takes it from for another seed.
func (a *actuator) keepState(ctx context.Context, runner *terraform.Runner,
	infrastructure *extensionsv1alpha1.Infrastructure) error {
	state, err := runner.State(ctx)
	if err != nil || len(state) == 0 {
		return err
	}
	infrastructure.Status.State, err = apis.Encode(movedState{Terraform: state})
	return err
}

// Delete implements extension.Actuator. The worker controller has removed the machines before; should any be left, they
// go before their network does. Their namespace goes with the Infrastructure.
func (a *actuator) Delete(ctx context.Context, log logr.Logger, infrastructure *extensionsv1alpha1.Infrastructure,
	shoot *cluster.Cluster) error {
	if err := a.deleteMachines(ctx, infrastructure.Namespace); err != nil {
		return err
	}
	runner, err := a.runner(ctx, log, infrastructure)
	if err != nil {
		return err
	}
	configuration, err := a.configuration(infrastructure, shoot)
	if err != nil {
		return err
	}
	return api.WithCodes(runner.Destroy(ctx, configuration))
}

// Migrate implements extension.Migrator: Terraform's state is taken along, and nothing is destroyed.
func (a *actuator) Migrate(ctx context.Context, log logr.Logger, infrastructure *extensionsv1alpha1.Infrastructure,
	_ *cluster.Cluster) error {
	runner, err := a.runner(ctx, log, infrastructure)
	if err != nil {
		return err
	}
	if err := a.keepState(ctx, runner, infrastructure); err != nil {
		return err
	}
	return runner.Forget(ctx)
}

// Restore implements extension.Restorer.
func (a *actuator) Restore(ctx context.Context, log logr.Logger, infrastructure *extensionsv1alpha1.Infrastructure,
	shoot *cluster.Cluster) error {
	state, err := apis.Decode[movedState](infrastructure.Status.State)
	if err != nil {
		return err
	}
	runner, err := a.runner(ctx, log, infrastructure)
	if err != nil {
		return err
	}
	if err := runner.RestoreState(ctx, state.Terraform); err != nil {
		return err
	}
	return a.Reconcile(ctx, log, infrastructure, shoot)
}

// movedState is status.state: what another seed needs.
type movedState struct {
	// Terraform is the state of Terraform.
	Terraform []byte `json:"terraform"`
}

func (a *actuator) configuration(infrastructure *extensionsv1alpha1.Infrastructure,
	shoot *cluster.Cluster) (string, error) {
	config, err := apis.Decode[apis.InfrastructureConfig](infrastructure.Spec.ProviderConfig)
	if err != nil {
		return "", fmt.Errorf("infrastructureConfig: %w", err)
	}
	return render(configValues{
		Name:      infrastructure.Namespace,
		Namespace: Namespace(infrastructure.Namespace),
		Range:     nodesRange(config, shoot),
	})
}

// nodesRange is where the owner of the shoot wants the machines to be.
func nodesRange(config apis.InfrastructureConfig, shoot *cluster.Cluster) string {
	if config.Networks != nil && config.Networks.Workers != "" {
		return config.Networks.Workers
	}
	if shoot == nil || shoot.Shoot == nil || shoot.Shoot.Spec.Networking == nil ||
		shoot.Shoot.Spec.Networking.Nodes == nil {
		return ""
	}
	return *shoot.Shoot.Spec.Networking.Nodes
}

func (a *actuator) runner(ctx context.Context, log logr.Logger,
	infrastructure *extensionsv1alpha1.Infrastructure) (*terraform.Runner, error) {
	cloud, err := a.options.Credentials.Client(ctx, infrastructure.Spec.SecretRef)
	if err != nil {
		return nil, err
	}
	options := a.options.Terraform
	options.Client, options.Namespace, options.Name, options.Log = a.client, infrastructure.Namespace,
		infrastructure.Name, log
	options.Env = map[string]string{
		terraformprovider.EnvEndpoint: cloud.Endpoint, terraformprovider.EnvToken: cloud.Token,
	}
	return terraform.New(options), nil
}

func (a *actuator) setStatus(infrastructure *extensionsv1alpha1.Infrastructure,
	outputs map[string]json.RawMessage) error {
	var network struct{ Name, CIDR, Gateway, Bridge, EgressCIDR string }
	if err := json.Unmarshal(outputs["network"], &network); err != nil {
		return fmt.Errorf("reading Terraform's output \"network\": %w", err)
	}
	status := apis.InfrastructureStatus{
		TypeMeta:    metav1.TypeMeta{APIVersion: apis.APIVersion, Kind: "InfrastructureStatus"},
		Namespace:   Namespace(infrastructure.Namespace),
		Nameservers: a.options.Nameservers,
		Network: apis.Network{
			Name: network.Name, CIDR: network.CIDR, Gateway: network.Gateway, Bridge: network.Bridge,
		},
	}
	var err error
	if infrastructure.Status.ProviderStatus, err = apis.Encode(status); err != nil {
		return err
	}
	infrastructure.Status.NodesCIDR = &network.CIDR
	infrastructure.Status.EgressCIDRs = []string{network.EgressCIDR}
	infrastructure.Status.Networking = &extensionsv1alpha1.InfrastructureStatusNetworking{Nodes: []string{network.CIDR}}
	return nil
}

// letMachinesIn lets the shoot's machine-controller make pods in the namespace of the machines.
func (a *actuator) letMachinesIn(ctx context.Context, technicalID string) error {
	meta := metav1.ObjectMeta{Namespace: Namespace(technicalID), Name: worker.ManagerName}
	role := &rbacv1.Role{ObjectMeta: meta}
	if _, err := controllerutil.CreateOrPatch(ctx, a.client, role, func() error {
		role.Rules = []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"pods", "secrets"},
			Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"},
		}}
		return nil
	}); err != nil {
		return fmt.Errorf("Role %s/%s: %w", meta.Namespace, meta.Name, err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta}
	if _, err := controllerutil.CreateOrPatch(ctx, a.client, binding, func() error {
		binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}
		binding.Subjects = []rbacv1.Subject{
			{Kind: rbacv1.ServiceAccountKind, Namespace: technicalID, Name: worker.ManagerName},
		}
		return nil
	}); err != nil {
		return fmt.Errorf("RoleBinding %s/%s: %w", meta.Namespace, meta.Name, err)
	}
	return nil
}

// deleteMachines waits until no machine is left.
func (a *actuator) deleteMachines(ctx context.Context, technicalID string) error {
	inNamespace := client.InNamespace(Namespace(technicalID))
	left := 0
	err := wait.PollUntilContextTimeout(ctx, pollInterval, machinesTimeout, true,
		func(ctx context.Context) (bool, error) {
			pods := &corev1.PodList{}
			if err := a.client.List(ctx, pods, inNamespace); err != nil {
				return false, err
			}
			if left = len(pods.Items); left == 0 {
				return true, nil
			}
			return false, a.client.DeleteAllOf(ctx, &corev1.Pod{}, inNamespace)
		})
	if err != nil {
		return fmt.Errorf("namespace %s still has %d machines: %w", Namespace(technicalID), left, err)
	}
	return nil
}
