package shoot

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
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/cleanup"
)

const (
	// cleanupInterval and cleanupTimeout bound one attempt of each step of the cleaning up.
	cleanupInterval = time.Second
	cleanupTimeout  = 10 * time.Minute
)

// planCleanup decides whether and how the cluster is emptied before it is deleted; nil if not. Clusters without nodes have
// nothing outside of themselves. What their objects have brought about elsewhere, as those of a fleet in its members, stays.
func planCleanup(shoot *gardencorev1beta1.Shoot) (*cleanup.Plan, error) {
	if len(shoot.Spec.Provider.Workers) == 0 || gardencorev1beta1.NeedsForceDeletion(shoot) {
		return nil, nil
	}
	plan, err := cleanup.NewPlan(shoot.Annotations)
	if err != nil {
		return nil, &configurationError{err}
	}
	return &plan, nil
}

// addCleanup adds what happens inside the cluster before anything of it is taken away. It returns the last task.
func (o *Operation) addCleanup(g *flow.Graph, after flow.TaskID) flow.TaskID {
	last := g.Add(flow.Task{Name: "Waking up the control plane", Fn: rollout(o.wakeUp), Dependencies: []flow.TaskID{after}})
	for _, step := range []struct {
		name string
		fn   flow.TaskFn
	}{
		{"Cleaning up webhooks in the shoot", o.cleanUp((*cleanup.Cleaner).Webhooks)},
		{"Cleaning up extended APIs in the shoot", o.cleanUp((*cleanup.Cleaner).ExtendedAPIs)},
		{"Cleaning up Kubernetes resources in the shoot", o.cleanUp((*cleanup.Cleaner).Resources)},
		{"Deleting metrics-server", o.deleteMetricsServer},
		{"Cleaning up namespaces in the shoot", o.cleanUp((*cleanup.Cleaner).Namespaces)},
	} {
		last = g.Add(flow.Task{
			Name: step.name, SkipIf: o.Plan.Cleanup == nil, Dependencies: []flow.TaskID{last},
			Fn: step.fn.RetryUntilTimeout(cleanupInterval, cleanupTimeout),
		})
	}
	return last
}

// deleteMetricsServer deletes metrics-server, and fails until it is gone: no namespace goes away while an API does not answer, as
// that of metrics-server where no node is left to run it. Objects of ManagedResources may stay, so its registration is deleted
// here, when nothing applies it again.
func (o *Operation) deleteMetricsServer(ctx context.Context) error {
	resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: o.meta(resourceMetricsServer)}
	if err := component.Delete(ctx, o.Seed, resource); err != nil {
		return err
	}
	err := o.Seed.Get(ctx, client.ObjectKeyFromObject(resource), resource)
	if err == nil {
		return fmt.Errorf("ManagedResource %s is not gone yet", resource.Name)
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading ManagedResource %s: %w", resource.Name, err)
	}
	return o.cleanUp((*cleanup.Cleaner).MetricsAPI)(ctx)
}

// wakeUp starts the control plane of a shoot that sleeps, as far as its deletion needs it. The mark goes last: who is killed
// in between begins anew.
func (o *Operation) wakeUp(ctx context.Context) error {
	asleep, err := isAsleep(ctx, o.Seed, o.Plan.Namespace)
	if err != nil || !asleep {
		return err
	}
	for _, stage := range [][]client.Object{
		{&appsv1.StatefulSet{ObjectMeta: o.meta(etcd.Name(etcd.Main))}, &appsv1.StatefulSet{ObjectMeta: o.meta(etcd.Name(etcd.Events))}},
		{&appsv1.Deployment{ObjectMeta: o.meta(kubeapiserver.Name)}},
		{&appsv1.Deployment{ObjectMeta: o.meta(kubecontrollermanager.Name)}},
	} {
		for _, object := range stage {
			if err := component.Scale(ctx, o.Seed, object, 1); err != nil {
				return err
			}
		}
		if err := component.WaitUntilHealthy(ctx, o.Seed, stage...); err != nil {
			return err
		}
	}
	return o.markAsleep(ctx, false)
}

// cleanUp makes one pass of a step, if there is a cluster to clean up.
func (o *Operation) cleanUp(pass func(*cleanup.Cleaner, context.Context) error) flow.TaskFn {
	return func(ctx context.Context) error {
		exists, err := o.hasServed(ctx)
		if err != nil || !exists {
			return err
		}
		config, err := shootConfig(ctx, o.Seed, o.Plan.Namespace)
		if err != nil {
			return err
		}
		shoot, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
		if err != nil {
			return &cleanupError{fmt.Errorf("the shoot's API server does not answer: %w", err)}
		}
		if err := pass(&cleanup.Cleaner{Client: shoot, Plan: *o.Plan.Cleanup, Now: time.Now}, ctx); err != nil {
			return &cleanupError{err}
		}
		return nil
	}
}

// hasServed says whether there may be anything in the cluster: its API server is there and has been given objects, and its
// infrastructure has not been taken away by an earlier attempt. A shoot whose creation failed early has nothing to clean up.
func (o *Operation) hasServed(ctx context.Context) (bool, error) {
	namespace := &corev1.Namespace{}
	if err := o.Seed.Get(ctx, client.ObjectKey{Name: o.Plan.Namespace}, namespace); err != nil || namespace.DeletionTimestamp != nil {
		return false, client.IgnoreNotFound(err)
	}
	for _, needed := range []client.Object{
		&appsv1.Deployment{ObjectMeta: o.meta(kubeapiserver.Name)}, &extensionsv1alpha1.Infrastructure{ObjectMeta: o.meta(o.Plan.ShootName)},
	} {
		err := o.Seed.Get(ctx, client.ObjectKeyFromObject(needed), needed)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading %s: %w", component.Describe(o.Seed, needed), err)
		}
	}
	resources, err := o.managedResources(ctx)
	return slices.ContainsFunc(resources, func(m resourcesv1alpha1.ManagedResource) bool {
		return m.Spec.Class == nil && len(m.Status.Resources) > 0
	}), err
}
