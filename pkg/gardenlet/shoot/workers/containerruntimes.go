package workers

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extension"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/extensions"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/tasks"
)

const (
	// containerRuntimesPath is where machines have the programs of further container runtimes.
	containerRuntimesPath = "/var/bin/containerruntimes"
	// labelContainerRuntime with the type of a runtime marks the nodes that have it.
	labelContainerRuntime = "containerruntime.worker.gardener.cloud/"
)

// addContainerRuntimes adds the runtimes beside containerd, which are installed on nodes that are there.
func (w *Workers) addContainerRuntimes(g *flow.Graph, workerReady flow.TaskID) {
	deployed := g.Add(flow.Task{
		Name: "Deploying container runtimes", Fn: tasks.Retried(w.deployContainerRuntimes), SkipIf: w.Plan.Workerless,
		Dependencies: []flow.TaskID{workerReady},
	})
	g.Add(flow.Task{
		Name: "Waiting until container runtimes are ready", Fn: w.waitForContainerRuntimes, SkipIf: w.Plan.Workerless,
		Dependencies: []flow.TaskID{deployed},
	})
	g.Add(flow.Task{
		Name: "Deleting container runtimes that no pool has any more", Fn: w.removeStaleContainerRuntimes,
		SkipIf:       w.Plan.Workerless,
		Dependencies: []flow.TaskID{deployed},
	})
}

// containerRuntimes returns the objects for the pools: one for each runtime of each pool.
func containerRuntimes(namespace string, pools []plan.Pool) []*extensionsv1alpha1.ContainerRuntime {
	var objects []*extensionsv1alpha1.ContainerRuntime
	for _, pool := range pools {
		if pool.Worker.CRI == nil {
			continue
		}
		for _, wanted := range pool.Worker.CRI.ContainerRuntimes {
			objects = append(objects, &extensionsv1alpha1.ContainerRuntime{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: wanted.Type + "-" + pool.Worker.Name},
				Spec: extensionsv1alpha1.ContainerRuntimeSpec{
					DefaultSpec: extensionsv1alpha1.DefaultSpec{
						Type: wanted.Type, ProviderConfig: extensions.Compact(wanted.ProviderConfig),
					},
					BinaryPath: containerRuntimesPath,
					WorkerPool: extensionsv1alpha1.ContainerRuntimeWorkerPool{
						Name: pool.Worker.Name,
						Selector: metav1.LabelSelector{
							MatchLabels: map[string]string{gardencorev1beta1.LabelWorkerPool: pool.Worker.Name},
						},
					},
				},
			})
		}
	}
	return objects
}

// containerRuntimeLabels are the labels of the nodes of a pool.
func containerRuntimeLabels(worker gardencorev1beta1.Worker) map[string]string {
	labels := map[string]string{}
	if worker.CRI != nil {
		for _, wanted := range worker.CRI.ContainerRuntimes {
			labels[labelContainerRuntime+wanted.Type] = "true"
		}
	}
	return labels
}

// deployContainerRuntimes writes the ContainerRuntimes.
func (w *Workers) deployContainerRuntimes(ctx context.Context) error {
	for _, wanted := range containerRuntimes(w.Plan.Namespace, w.Plan.Pools) {
		object := &extensionsv1alpha1.ContainerRuntime{ObjectMeta: w.Plan.Meta(wanted.Name)}
		if err := extension.Deploy(ctx, w.Seed, object, true, func() { object.Spec = wanted.Spec }); err != nil {
			return err
		}
	}
	return nil
}

// waitForContainerRuntimes waits for the extensions.
func (w *Workers) waitForContainerRuntimes(ctx context.Context) error {
	var waits []flow.TaskFn
	for _, wanted := range containerRuntimes(w.Plan.Namespace, w.Plan.Pools) {
		waits = append(waits, func(ctx context.Context) error {
			return extension.Wait(ctx, w.Seed,
				&extensionsv1alpha1.ContainerRuntime{ObjectMeta: w.Plan.Meta(wanted.Name)}, extension.DefaultTiming)
		})
	}
	if len(waits) == 0 {
		return nil
	}
	return flow.Parallel(waits...)(ctx)
}

// removeStaleContainerRuntimes removes what pools had before.
func (w *Workers) removeStaleContainerRuntimes(ctx context.Context) error {
	list := &extensionsv1alpha1.ContainerRuntimeList{}
	if err := w.Seed.List(ctx, list, client.InNamespace(w.Plan.Namespace)); err != nil {
		return fmt.Errorf("listing ContainerRuntimes: %w", err)
	}
	for _, object := range staleContainerRuntimes(list.Items, w.Plan.Pools) {
		if err := extension.Destroy(ctx, w.Seed, object); err != nil {
			return err
		}
		if err := extension.WaitGone(ctx, w.Seed, object, extension.DefaultTiming); err != nil {
			return err
		}
	}
	return nil
}

// staleContainerRuntimes returns those that no pool asks for.
func staleContainerRuntimes(present []extensionsv1alpha1.ContainerRuntime,
	pools []plan.Pool) []*extensionsv1alpha1.ContainerRuntime {
	wanted := map[string]bool{}
	for _, object := range containerRuntimes("", pools) {
		wanted[object.Name] = true
	}
	var stale []*extensionsv1alpha1.ContainerRuntime
	for i := range present {
		if !wanted[present[i].Name] {
			stale = append(stale, &present[i])
		}
	}
	return stale
}
