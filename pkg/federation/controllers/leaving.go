package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// leavingWatch hears that the member is to leave the fleet. It is told by the events themselves: the Cluster may be
// gone before a reconciler gets to look at it, and nobody else would tell the agent.
type leavingWatch struct {
	cache cache.Cache
	agent AgentOptions
	// retry is how long to wait when Leaving fails.
	retry time.Duration
}

// Start implements manager.Runnable.
func (l *leavingWatch) Start(ctx context.Context) error {
	informer, err := l.cache.GetInformer(ctx, &clusterv1alpha1.Cluster{})
	if err != nil {
		return fmt.Errorf("watching member %s: %w", l.agent.Name, err)
	}
	heard := make(chan struct{}, 1)
	hear := func(object any) {
		if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		if cluster, ok := object.(*clusterv1alpha1.Cluster); ok && cluster.Name == l.agent.Name &&
			cluster.DeletionTimestamp != nil {
			select {
			case heard <- struct{}{}:
			default:
			}
		}
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: hear, UpdateFunc: func(_, object any) { hear(object) }, DeleteFunc: hear,
	})
	if err != nil {
		return fmt.Errorf("watching member %s: %w", l.agent.Name, err)
	}
	defer func() { _ = informer.RemoveEventHandler(registration) }()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-heard:
		}
		var before string
		// It ends with success, or with ctx.
		_ = wait.PollUntilContextCancel(ctx, l.retry, true, func(ctx context.Context) (bool, error) {
			err := l.agent.Leaving(ctx)
			if err != nil && err.Error() != before {
				before = err.Error()
				log.FromContext(ctx).Error(err, "Cannot note yet that the member is to leave the fleet", "member",
					l.agent.Name)
			}
			return err == nil, nil
		})
	}
}
