package workers

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/controlplane"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/tasks"
)

// addAutoscalerStop adds what happens to autoscalers before pools are changed: they must not act on limits that are
// about to change, nor on machines that are to go for hibernation.
func (w *Workers) addAutoscalerStop(g *flow.Graph, c controlplane.Tasks) flow.TaskID {
	return g.Add(flow.Task{
		Name: "Stopping autoscalers unless they may go on", SkipIf: w.Plan.Workerless,
		Dependencies: []flow.TaskID{c.APIServer},
		Fn:           tasks.Rollout(w.restrainAutoscalers),
	})
}

// restrainAutoscalers removes the autoscalers that a shoot does without, and stops the others if they would be in the
// way.
func (w *Workers) restrainAutoscalers(ctx context.Context) error {
	for _, c := range components.Of(components.Autoscalers) {
		if w.Plan.Has(c.Name) {
			continue
		}
		autoscaler := c.Build(w.Components)
		if err := autoscaler.Destroy(ctx); err != nil {
			return err
		}
		if err := autoscaler.WaitCleanup(ctx); err != nil {
			return err
		}
	}
	if mayGoOn, err := w.mayScale(ctx); err != nil || mayGoOn {
		return err
	}
	return components.Stop(ctx, w.Seed, w.Plan.Namespace, components.Autoscalers)
}

// mayScale says whether the shoot stays awake, and no pool is about to have another number of machines.
func (w *Workers) mayScale(ctx context.Context) (bool, error) {
	if w.Plan.Hibernation != plan.Awake {
		return false, nil
	}
	worker := &extensionsv1alpha1.Worker{}
	if err := client.IgnoreNotFound(w.Seed.Get(ctx, w.Plan.Key(w.Plan.ShootName), worker)); err != nil {
		return false, fmt.Errorf("reading Worker %s: %w", w.Plan.Key(w.Plan.ShootName), err)
	}
	return !limitsDiffer(worker.Spec.Pools, w.Plan.Pools), nil
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

// Machines are those that the Worker reports, with their limits.
func (w *Workers) Machines(ctx context.Context) ([]extensionsv1alpha1.MachineDeployment, error) {
	worker := &extensionsv1alpha1.Worker{}
	if err := w.Seed.Get(ctx, w.Plan.Key(w.Plan.ShootName), worker); err != nil {
		return nil, fmt.Errorf("reading Worker %s: %w", w.Plan.Key(w.Plan.ShootName), err)
	}
	return worker.Status.MachineDeployments, nil
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
