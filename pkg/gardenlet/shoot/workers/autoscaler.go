package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/clusterautoscaler"
	"github.com/trellis-garden/trellis/pkg/component/managedresources"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/controlplane"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/tasks"
)

// resourceClusterAutoscaler is the ManagedResource with what belongs to the cluster-autoscaler in the shoot.
const resourceClusterAutoscaler = "shoot-core-cluster-autoscaler"

// addAutoscalerStop adds what happens to the cluster-autoscaler before pools are changed: it must not act on limits
// that are about to change, nor on machines that are to go for hibernation.
func (w *Workers) addAutoscalerStop(g *flow.Graph, c controlplane.Tasks) flow.TaskID {
	return g.Add(flow.Task{
		Name: "Stopping cluster-autoscaler unless it may go on", SkipIf: w.Plan.Workerless,
		Dependencies: []flow.TaskID{c.APIServer},
		Fn:           tasks.Rollout(w.restrainAutoscaler),
	})
}

// addAutoscaler adds the cluster-autoscaler, which gets its limits from the status of the Worker.
func (w *Workers) addAutoscaler(g *flow.Graph, workerReady flow.TaskID) {
	skip := !w.Plan.Has(clusterautoscaler.Name) || w.Plan.Hibernation != plan.Awake
	deployed := g.Add(flow.Task{
		Name: "Deploying cluster-autoscaler", Fn: tasks.Retried(w.deployAutoscaler), SkipIf: skip,
		Dependencies: []flow.TaskID{workerReady},
	})
	g.Add(flow.Task{
		Name: "Waiting until cluster-autoscaler is ready", SkipIf: skip, Dependencies: []flow.TaskID{deployed},
		Fn: tasks.Rollout(func(ctx context.Context) error { return w.autoscaler().Wait(ctx) }),
	})
}

// restrainAutoscaler removes the cluster-autoscaler of a shoot that needs none any more, and stops one that would be
// in the way. Otherwise it goes on.
func (w *Workers) restrainAutoscaler(ctx context.Context) error {
	if !w.Plan.Has(clusterautoscaler.Name) {
		return w.removeAutoscaler(ctx)
	}
	if w.Plan.Hibernation == plan.Awake {
		changes, err := w.limitsChange(ctx)
		if err != nil || !changes {
			return err
		}
	}
	return StopAutoscaler(ctx, w.Seed, w.Plan.Identity)
}

// limitsChange says whether the number of machines that a pool may have is about to change.
func (w *Workers) limitsChange(ctx context.Context) (bool, error) {
	worker := &extensionsv1alpha1.Worker{}
	if err := client.IgnoreNotFound(w.Seed.Get(ctx, w.Plan.Key(w.Plan.ShootName), worker)); err != nil {
		return false, fmt.Errorf("reading Worker %s: %w", w.Plan.Key(w.Plan.ShootName), err)
	}
	return limitsDiffer(worker.Spec.Pools, w.Plan.Pools), nil
}

// limitsDiffer compares the pools of the Worker with those that are planned. Pools that come or go change no others.
func limitsDiffer(current []extensionsv1alpha1.WorkerPool, planned []plan.Pool) bool {
	for _, pool := range current {
		i := slices.IndexFunc(planned, func(p plan.Pool) bool { return p.Worker.Name == pool.Name })
		if i < 0 {
			continue
		}
		if w := planned[i].Worker; w.Minimum != pool.Minimum || w.Maximum != pool.Maximum ||
			!slices.Equal(w.Zones, pool.Zones) {
			return true
		}
	}
	return false
}

// StopAutoscaler stops the cluster-autoscaler, if there is one, and waits until its last pod is gone.
func StopAutoscaler(ctx context.Context, seed client.WithWatch, shoot plan.Identity) error {
	return component.Stop(ctx, seed, components.Named(clusterautoscaler.Name).Workload(shoot.Namespace))
}

// autoscaler is the component, to wait for it or to delete it.
func (w *Workers) autoscaler() component.Component {
	return components.Named(clusterautoscaler.Name).Build(w.Components)
}

// removeAutoscaler deletes the cluster-autoscaler and what belongs to it in the shoot.
func (w *Workers) removeAutoscaler(ctx context.Context) error {
	autoscaler := w.autoscaler()
	if err := autoscaler.Destroy(ctx); err != nil {
		return err
	}
	return errors.Join(autoscaler.WaitCleanup(ctx),
		managedresources.Remove(ctx, w.Seed, w.Plan.Namespace, resourceClusterAutoscaler))
}

// deployAutoscaler deploys the cluster-autoscaler with the limits that the Worker reports.
func (w *Workers) deployAutoscaler(ctx context.Context) error {
	worker := &extensionsv1alpha1.Worker{}
	if err := w.Seed.Get(ctx, w.Plan.Key(w.Plan.ShootName), worker); err != nil {
		return fmt.Errorf("reading Worker %s: %w", w.Plan.Key(w.Plan.ShootName), err)
	}
	values := components.ValuesOf[clusterautoscaler.Values](w.Plan.Values, clusterautoscaler.Name)
	values.Kubeconfig = w.Components.KubeAPIServer().GenericTokenKubeconfigSecretName()
	values.MachineDeployments = worker.Status.MachineDeployments
	objects, err := clusterautoscaler.ShootObjects(values)
	if err != nil {
		return err
	}
	if err := managedresources.Deploy(ctx, w.Seed, w.Plan.Namespace, resourceClusterAutoscaler, objects...); err != nil {
		return err
	}
	return clusterautoscaler.New(w.Seed, w.Plan.Namespace, values).Deploy(ctx)
}

// autoscalerOptions translates the settings of a pool for the cluster-autoscaler.
func autoscalerOptions(
	options *gardencorev1beta1.ClusterAutoscalerOptions) *extensionsv1alpha1.ClusterAutoscalerOptions {
	if options == nil {
		return nil
	}
	share := func(value *float64) *string {
		if value == nil {
			return nil
		}
		text := strconv.FormatFloat(*value, 'g', -1, 64)
		return &text
	}
	return &extensionsv1alpha1.ClusterAutoscalerOptions{
		ScaleDownUtilizationThreshold:    share(options.ScaleDownUtilizationThreshold),
		ScaleDownGpuUtilizationThreshold: share(options.ScaleDownGpuUtilizationThreshold),
		ScaleDownUnneededTime:            options.ScaleDownUnneededTime,
		ScaleDownUnreadyTime:             options.ScaleDownUnreadyTime,
		MaxNodeProvisionTime:             options.MaxNodeProvisionTime,
	}
}
