package seed

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/charts"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apply"
	"github.com/trellis-garden/trellis/pkg/component"
	egresscomponent "github.com/trellis-garden/trellis/pkg/component/egress"
	"github.com/trellis-garden/trellis/pkg/component/networkpolicies"
	"github.com/trellis-garden/trellis/pkg/conditions"
	"github.com/trellis-garden/trellis/pkg/crd"
	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/seednodes"
	"github.com/trellis-garden/trellis/pkg/helm"
	"github.com/trellis-garden/trellis/pkg/imagevector"
)

const (
	crdFolder           = "crds/seed"
	resourceManagerName = "resource-manager"
)

// System is what every seed runs: custom resource definitions, priority classes, the egress proxy and resource-manager.
type System struct {
	// Seed is a client of the seed.
	Seed client.Client
	// Helm installs charts in it.
	Helm *helm.Client
	// Images resolves image names.
	Images imagevector.Vector
	// Config is gardenlet's configuration.
	Config *config.Configuration
}

// Install brings everything up to date. It waits for nothing but the API server to serve new kinds.
func (s *System) Install(ctx context.Context, seed *gardencorev1beta1.Seed) error {
	if err := s.InstallCRDs(ctx); err != nil {
		return err
	}
	if err := s.InstallPriorityClasses(ctx); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: gardencorev1beta1.GardenNamespace}}
	if err := component.Apply(ctx, s.Seed, namespace); err != nil {
		return err
	}
	if err := s.restrictNetwork(ctx, seed); err != nil {
		return err
	}
	if err := s.reserveCapacity(ctx, seed); err != nil {
		return err
	}
	if err := s.installEgress(ctx, seed); err != nil {
		return err
	}
	return s.installResourceManager(ctx, seed)
}

// installEgress installs the proxy by which kube-apiservers leave the seed.
func (s *System) installEgress(ctx context.Context, seed *gardencorev1beta1.Seed) error {
	image, err := s.Images.Find("vpn")
	if err != nil {
		return err
	}
	return egresscomponent.New(s.Seed, egresscomponent.Values{
		Image: image.String(), DeniedNetworks: ownNetworks(&seed.Spec.Networks),
		AllowedNetworks: s.Config.Egress.AllowedNetworks,
	}).Deploy(ctx)
}

// ownNetworks are those that users' addresses must not lead to.
func ownNetworks(networks *gardencorev1beta1.SeedNetworks) []string {
	list := []string{networks.Pods, networks.Services}
	if networks.Nodes != nil {
		list = append(list, *networks.Nodes)
	}
	return slices.DeleteFunc(append(list, networks.BlockCIDRs...), func(network string) bool { return network == "" })
}

// EgressRules are those of the seed's egress proxy.
func EgressRules(networks *gardencorev1beta1.SeedNetworks, allowed []string) (egress.Rules, error) {
	var rules egress.Rules
	for _, network := range ownNetworks(networks) {
		prefix, err := netip.ParsePrefix(network)
		if err != nil {
			return egress.Rules{}, fmt.Errorf("networks of the seed: %w", err)
		}
		rules.Denied = append(rules.Denied, prefix)
	}
	for _, network := range allowed {
		allowance, err := egress.ParseAllowance(network)
		if err != nil {
			return egress.Rules{}, fmt.Errorf("egress.allowedNetworks: %w", err)
		}
		rules.Allowed = append(rules.Allowed, allowance)
	}
	return rules, nil
}

// InstallPriorityClasses applies the priority classes that pods of the seed have, those of extensions and of control
// planes too: without its class a pod is refused, and what makes it tries again only much later.
func (s *System) InstallPriorityClasses(ctx context.Context) error {
	return component.Apply(ctx, s.Seed, component.SeedPriorityClasses()...)
}

// InstallCRDs applies the custom resource definitions of a seed, and waits until they are served.
func (s *System) InstallCRDs(ctx context.Context) error {
	definitions, err := crd.Read(charts.FS, crdFolder)
	if err != nil {
		return err
	}
	return crd.Install(ctx, s.Seed, apply.Gardenlet, definitions...)
}

// installResourceManager installs its chart: with replicas where the seed has several nodes, whatever its shoots want.
func (s *System) installResourceManager(ctx context.Context, seed *gardencorev1beta1.Seed) error {
	image, err := s.Images.Find(resourceManagerName)
	if err != nil {
		return err
	}
	chart, err := helm.LoadFS(charts.FS, resourceManagerName)
	if err != nil {
		return err
	}
	replicas, err := s.replicas(ctx)
	if err != nil {
		return err
	}
	_, err = s.Helm.Install(ctx, helm.Release{
		Namespace: gardencorev1beta1.GardenNamespace, Name: resourceManagerName, Chart: chart,
		Values: map[string]any{
			"image":      image.String(),
			"clusterID":  "seed-" + seed.Name,
			"syncPeriod": s.Config.ResourceManager.SyncPeriod.Duration.String(),
			"replicas":   replicas,
		},
	})
	return err
}

// replicas is how many there are of what keeps no data itself.
func (s *System) replicas(ctx context.Context) (int32, error) {
	single, err := seednodes.AreSingle(ctx, s.Seed)
	if single || err != nil {
		return 1, err
	}
	return component.Pair, nil
}

// Uninstall removes resource-manager, the egress proxy, the reserved capacity and the network policies. The custom
// resource definitions and the priority classes stay: others may use them.
func (s *System) Uninstall(ctx context.Context) error {
	if err := s.releaseCapacity(ctx, nil); err != nil {
		return err
	}
	if err := egresscomponent.New(s.Seed, egresscomponent.Values{}).Destroy(ctx); err != nil {
		return err
	}
	if err := s.Helm.Uninstall(ctx, gardencorev1beta1.GardenNamespace, resourceManagerName); err != nil {
		return err
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: gardencorev1beta1.GardenNamespace, Name: resourceManagerName},
	}
	if err := component.Delete(ctx, s.Seed, lease); err != nil {
		return err
	}
	return networkpolicies.Apply(ctx, s.Seed, gardencorev1beta1.GardenNamespace, nil)
}

// Health returns the condition of what Install installed.
func (s *System) Health(ctx context.Context) gardencorev1beta1.Condition {
	for _, name := range []string{resourceManagerName, egress.Name} {
		deployment := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: gardencorev1beta1.GardenNamespace, Name: name},
		}
		err := s.Seed.Get(ctx, client.ObjectKeyFromObject(deployment), deployment)
		if err == nil {
			err = component.CheckDeployment(deployment)
		}
		if err == nil {
			continue
		}
		status := gardencorev1beta1.ConditionFalse
		if time.Since(deployment.CreationTimestamp.Time) < time.Minute {
			status = gardencorev1beta1.ConditionProgressing
		}
		return conditions.New(gardencorev1beta1.SeedSystemComponentsHealthy, status, "DeploymentUnhealthy",
			fmt.Sprintf("Deployment %s: %v", client.ObjectKeyFromObject(deployment), err))
	}
	return conditions.New(gardencorev1beta1.SeedSystemComponentsHealthy, gardencorev1beta1.ConditionTrue,
		"SystemComponentsRunning", "All system components are healthy.")
}
