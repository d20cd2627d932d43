package shoot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/clusterautoscaler"
	"github.com/trellis-garden/trellis/pkg/flow"
)

// resourceClusterAutoscaler is the ManagedResource with what belongs to the cluster-autoscaler in the shoot.
const resourceClusterAutoscaler = "shoot-core-cluster-autoscaler"

// addAutoscalerStop adds what happens to the cluster-autoscaler before pools are changed: it must not act on limits that are about
// to change, nor on machines that are to go for hibernation.
func (o *Operation) addAutoscalerStop(g *flow.Graph, c controlPlane) flow.TaskID {
	return g.Add(flow.Task{
		Name: "Stopping cluster-autoscaler unless it may go on", SkipIf: o.Plan.Workerless, Dependencies: []flow.TaskID{c.apiServer},
		Fn: rollout(o.restrainAutoscaler),
	})
}

// addAutoscaler adds the cluster-autoscaler, which gets its limits from the status of the Worker.
func (o *Operation) addAutoscaler(g *flow.Graph, workerReady flow.TaskID) {
	skip := !o.Plan.Has(clusterautoscaler.Name) || o.Plan.Hibernation != Awake
	deployed := g.Add(flow.Task{
		Name: "Deploying cluster-autoscaler", Fn: retried(o.deployAutoscaler), SkipIf: skip, Dependencies: []flow.TaskID{workerReady},
	})
	g.Add(flow.Task{
		Name: "Waiting until cluster-autoscaler is ready", SkipIf: skip, Dependencies: []flow.TaskID{deployed},
		Fn: rollout(func(ctx context.Context) error { return o.clusterAutoscaler().Wait(ctx) }),
	})
}

// restrainAutoscaler removes the cluster-autoscaler of a shoot that needs none any more, and stops one that would be in the way.
// Otherwise it goes on.
func (o *Operation) restrainAutoscaler(ctx context.Context) error {
	if !o.Plan.Has(clusterautoscaler.Name) {
		return o.removeAutoscaler(ctx)
	}
	if o.Plan.Hibernation == Awake {
		changes, err := o.limitsChange(ctx)
		if err != nil || !changes {
			return err
		}
	}
	return o.stopAutoscaler(ctx)
}

// limitsChange says whether the number of machines that a pool may have is about to change.
func (o *Operation) limitsChange(ctx context.Context) (bool, error) {
	worker := &extensionsv1alpha1.Worker{}
	if err := client.IgnoreNotFound(o.Seed.Get(ctx, o.key(o.Plan.ShootName), worker)); err != nil {
		return false, fmt.Errorf("reading Worker %s: %w", o.key(o.Plan.ShootName), err)
	}
	return limitsDiffer(worker.Spec.Pools, o.Plan.Pools), nil
}

// limitsDiffer compares the pools of the Worker with those that are planned. Pools that come or go change no others.
func limitsDiffer(current []extensionsv1alpha1.WorkerPool, planned []PoolPlan) bool {
	for _, pool := range current {
		i := slices.IndexFunc(planned, func(p PoolPlan) bool { return p.Worker.Name == pool.Name })
		if i < 0 {
			continue
		}
		if w := planned[i].Worker; w.Minimum != pool.Minimum || w.Maximum != pool.Maximum || !slices.Equal(w.Zones, pool.Zones) {
			return true
		}
	}
	return false
}

// stopAutoscaler stops the cluster-autoscaler, if there is one, and waits until its last pod is gone.
func (o *Operation) stopAutoscaler(ctx context.Context) error {
	deployment := &appsv1.Deployment{ObjectMeta: o.meta(clusterautoscaler.Name)}
	if err := component.Scale(ctx, o.Seed, deployment, 0); client.IgnoreNotFound(err) != nil {
		return err
	}
	return component.WaitUntilNoPods(ctx, o.Seed, o.Plan.Namespace, clusterautoscaler.Labels())
}

// removeAutoscaler deletes the cluster-autoscaler and what belongs to it in the shoot.
func (o *Operation) removeAutoscaler(ctx context.Context) error {
	autoscaler := o.clusterAutoscaler()
	if err := autoscaler.Destroy(ctx); err != nil {
		return err
	}
	return errors.Join(autoscaler.WaitCleanup(ctx), o.removeManagedResource(ctx, resourceClusterAutoscaler))
}

// clusterAutoscaler is the component, as far as it is known before there is a Worker: enough to wait for it and to delete it.
func (o *Operation) clusterAutoscaler() component.Component {
	return clusterautoscaler.New(o.Seed, o.Plan.Namespace, clusterautoscaler.Values{})
}

// deployAutoscaler deploys the cluster-autoscaler with the limits that the Worker reports.
func (o *Operation) deployAutoscaler(ctx context.Context) error {
	worker := &extensionsv1alpha1.Worker{}
	if err := o.Seed.Get(ctx, o.key(o.Plan.ShootName), worker); err != nil {
		return fmt.Errorf("reading Worker %s: %w", o.key(o.Plan.ShootName), err)
	}
	values := clusterautoscaler.Values{
		Image: o.Plan.Images["cluster-autoscaler"], Kubeconfig: o.kubeAPIServer().GenericTokenKubeconfigSecretName(),
		MachineDeployments: worker.Status.MachineDeployments, Config: o.Plan.Kubernetes.ClusterAutoscaler,
	}
	objects, err := clusterautoscaler.ShootObjects(values)
	if err != nil {
		return err
	}
	if err := o.deployManagedResource(ctx, resourceClusterAutoscaler, objects...); err != nil {
		return err
	}
	return clusterautoscaler.New(o.Seed, o.Plan.Namespace, values).Deploy(ctx)
}

// autoscalerOptions translates the settings of a pool for the cluster-autoscaler.
func autoscalerOptions(options *gardencorev1beta1.ClusterAutoscalerOptions) *extensionsv1alpha1.ClusterAutoscalerOptions {
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
		ScaleDownUtilizationThreshold: share(options.ScaleDownUtilizationThreshold), ScaleDownGpuUtilizationThreshold: share(options.ScaleDownGpuUtilizationThreshold),
		ScaleDownUnneededTime: options.ScaleDownUnneededTime, ScaleDownUnreadyTime: options.ScaleDownUnreadyTime, MaxNodeProvisionTime: options.MaxNodeProvisionTime,
	}
}
