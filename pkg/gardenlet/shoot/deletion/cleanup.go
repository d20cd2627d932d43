package deletion

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apply"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/component/managedresources"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/access"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/cleanup"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/hibernation"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/tasks"
)

const (
	// cleanupInterval and cleanupTimeout bound one attempt of each step of the cleaning up.
	cleanupInterval = time.Second
	cleanupTimeout  = 10 * time.Minute
)

// cleanupError says that something inside the cluster does not go away.
type cleanupError struct{ error }

// Unwrap returns the cause.
func (e *cleanupError) Unwrap() error { return e.error }

// ErrorCodes tells what the error means.
func (e *cleanupError) ErrorCodes() []gardencorev1beta1.ErrorCode {
	return []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorCleanupClusterResources}
}

// addCleanup adds what happens inside the cluster before anything of it is taken away. It returns the last task.
func (d *Deletion) addCleanup(g *flow.Graph, after flow.TaskID) flow.TaskID {
	last := g.Add(flow.Task{
		Name: "Waking up the control plane", Fn: tasks.Rollout(d.wakeUp), Dependencies: []flow.TaskID{after},
	})
	for _, step := range []struct {
		name string
		fn   flow.TaskFn
	}{
		{"Cleaning up webhooks in the shoot", d.cleanUp((*cleanup.Cleaner).Webhooks)},
		{"Cleaning up extended APIs in the shoot", d.cleanUp((*cleanup.Cleaner).ExtendedAPIs)},
		{"Cleaning up Kubernetes resources in the shoot", d.cleanUp((*cleanup.Cleaner).Resources)},
		{"Deleting metrics-server", d.deleteMetricsServer},
		{"Cleaning up namespaces in the shoot", d.cleanUp((*cleanup.Cleaner).Namespaces)},
	} {
		last = g.Add(flow.Task{
			Name: step.name, SkipIf: d.Plan.Cleanup == nil, Dependencies: []flow.TaskID{last},
			Fn: step.fn.RetryUntilTimeout(cleanupInterval, cleanupTimeout),
		})
	}
	return last
}

// deleteMetricsServer deletes metrics-server, and fails until it is gone: no namespace goes away while an API does
// not answer, as that of metrics-server where no node is left to run it. Objects of ManagedResources may stay, so its
// registration is deleted here, when nothing applies it again.
func (d *Deletion) deleteMetricsServer(ctx context.Context) error {
	resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: d.Plan.Meta(components.MetricsServer)}
	if err := component.Delete(ctx, d.Seed, resource); err != nil {
		return err
	}
	err := d.Seed.Get(ctx, client.ObjectKeyFromObject(resource), resource)
	if err == nil {
		return fmt.Errorf("ManagedResource %s is not gone yet", resource.Name)
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading ManagedResource %s: %w", resource.Name, err)
	}
	return d.cleanUp((*cleanup.Cleaner).MetricsAPI)(ctx)
}

// wakeUp starts the control plane of a shoot that sleeps, as far as its deletion needs it. The mark goes last: who is
// killed in between begins anew.
func (d *Deletion) wakeUp(ctx context.Context) error {
	asleep, err := hibernation.IsAsleep(ctx, d.Seed, d.Plan.Namespace)
	if err != nil || !asleep {
		return err
	}
	for _, stage := range []components.Stage{components.Stores, components.APIServers, components.Controllers} {
		var workloads []client.Object
		for _, c := range components.Of(stage) {
			if stage != components.Controllers || c.Empties {
				workloads = append(workloads, c.Workload(d.Plan.Namespace))
			}
		}
		for _, object := range workloads {
			if err := component.Start(ctx, d.Seed, object); err != nil {
				return err
			}
		}
		if err := component.WaitUntilHealthy(ctx, d.Seed, workloads...); err != nil {
			return err
		}
	}
	return hibernation.MarkAsleep(ctx, d.Seed, d.Plan.Identity, false)
}

// cleanUp makes one pass of a step, if there is a cluster to clean up.
func (d *Deletion) cleanUp(pass func(*cleanup.Cleaner, context.Context) error) flow.TaskFn {
	return func(ctx context.Context) error {
		exists, err := d.hasServed(ctx)
		if err != nil || !exists {
			return err
		}
		config, err := access.AdminConfig(ctx, d.Seed, d.Plan.Namespace)
		if err != nil {
			return err
		}
		shoot, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
		if err != nil {
			return &cleanupError{fmt.Errorf("the shoot's API server does not answer: %w", err)}
		}
		if err := pass(&cleanup.Cleaner{Client: shoot, Plan: *d.Plan.Cleanup, Now: time.Now}, ctx); err != nil {
			return &cleanupError{err}
		}
		return nil
	}
}

// hasServed says whether there may be anything in the cluster: its API server is there and has been given objects,
// and its infrastructure has not been taken away by an earlier attempt. A shoot whose creation failed early has
// nothing to clean up.
func (d *Deletion) hasServed(ctx context.Context) (bool, error) {
	namespace := &corev1.Namespace{}
	if err := d.Seed.Get(ctx, client.ObjectKey{Name: d.Plan.Namespace}, namespace); err != nil ||
		namespace.DeletionTimestamp != nil {
		return false, client.IgnoreNotFound(err)
	}
	for _, needed := range []client.Object{
		&appsv1.Deployment{ObjectMeta: d.Plan.Meta(kubeapiserver.Name)},
		&extensionsv1alpha1.Infrastructure{ObjectMeta: d.Plan.Meta(d.Plan.ShootName)},
	} {
		err := d.Seed.Get(ctx, client.ObjectKeyFromObject(needed), needed)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading %s: %w", apply.Describe(d.Seed.Scheme(), needed), err)
		}
	}
	resources, err := managedresources.List(ctx, d.Seed, d.Plan.Namespace)
	return slices.ContainsFunc(resources, func(m resourcesv1alpha1.ManagedResource) bool {
		return m.Spec.Class == nil && len(m.Status.Resources) > 0
	}), err
}
