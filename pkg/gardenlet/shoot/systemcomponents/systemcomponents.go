// Package systemcomponents makes what runs inside a shoot for the shoot itself, and its network.
package systemcomponents

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/managedresources"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/controlplane"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/extensions"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/foundation"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/tasks"
)

// System makes that of one shoot.
type System struct {
	Plan       *plan.Plan
	Seed       client.WithWatch
	Components *components.Builder
}

// Add adds what runs inside the shoot. Its ManagedResources are written early: resource-manager applies
// them as soon as the API server answers.
func (s *System) Add(g *flow.Graph, f foundation.Tasks, c controlplane.Tasks) []flow.TaskID {
	var all []flow.TaskID
	after := append([]flow.TaskID{f.Secrets}, c.AuthoritiesReplaced...)
	for _, c := range components.System {
		all = append(all, g.Add(flow.Task{
			Name: "Deploying " + c.Name, SkipIf: !s.Plan.Has(c.Name), Dependencies: after,
			Fn: tasks.Retried(func(ctx context.Context) error {
				objects, err := c.Objects(ctx, s.Components)
				if err != nil {
					return err
				}
				return managedresources.Deploy(ctx, s.Seed, s.Plan.Namespace, c.Name,
					onSystemPools(objects, s.Plan.SystemPoolTolerations)...)
			}),
		}))
	}
	g.Add(flow.Task{
		Name: "Removing system components that the shoot does without", Fn: tasks.Rollout(s.removeSystemComponents),
		Dependencies: []flow.TaskID{c.APIServer},
	})
	return append(all, s.addNetwork(g, f))
}

// removeSystemComponents takes away what the shoot had before its specification changed, as kube-proxy when that is
// disabled.
func (s *System) removeSystemComponents(ctx context.Context) error {
	for _, c := range components.System {
		if s.Plan.Has(c.Name) {
			continue
		}
		if err := managedresources.Remove(ctx, s.Seed, s.Plan.Namespace, c.Name); err != nil {
			return err
		}
	}
	return nil
}

// onSystemPools keeps Deployments on the pools that allow system components, whose taints they tolerate. DaemonSets
// run everywhere.
func onSystemPools(objects []client.Object, tolerations []corev1.Toleration) []client.Object {
	for _, object := range objects {
		deployment, ok := object.(*appsv1.Deployment)
		if !ok {
			continue
		}
		pod := &deployment.Spec.Template.Spec
		pod.NodeSelector = component.Merge(pod.NodeSelector,
			map[string]string{gardencorev1beta1.LabelWorkerPoolSystemComponents: "true"})
		pod.Tolerations = append(pod.Tolerations, tolerations...)
	}
	return objects
}

// addNetwork adds the network plugin.
func (s *System) addNetwork(g *flow.Graph, f foundation.Tasks) flow.TaskID {
	skip := s.Plan.Workerless || s.Plan.Networks.Type == ""
	deployed := g.Add(flow.Task{
		Name: "Deploying network plugin", Fn: tasks.Retried(s.deployNetwork), SkipIf: skip,
		Dependencies: []flow.TaskID{f.Secrets, f.References},
	})
	return g.Add(flow.Task{
		Name: "Waiting until network plugin is ready", SkipIf: skip, Dependencies: []flow.TaskID{deployed},
		Fn: func(ctx context.Context) error {
			return extension.Wait(ctx, s.Seed, &extensionsv1alpha1.Network{ObjectMeta: s.Plan.Meta(s.Plan.ShootName)},
				extension.DefaultTiming)
		},
	})
}

// deployNetwork writes the Network.
func (s *System) deployNetwork(ctx context.Context) error {
	object := &extensionsv1alpha1.Network{ObjectMeta: s.Plan.Meta(s.Plan.ShootName)}
	return extension.Deploy(ctx, s.Seed, object, true, func() {
		object.Spec = extensionsv1alpha1.NetworkSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{
				Type: s.Plan.Networks.Type, ProviderConfig: extensions.Compact(s.Plan.Networks.ProviderConfig),
			},
			PodCIDR: s.Plan.Networks.Pods[0], ServiceCIDR: s.Plan.Networks.Services[0],
			IPFamilies: s.Plan.Networks.IPFamilies,
		}
	})
}
