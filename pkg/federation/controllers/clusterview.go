package controllers

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
	"github.com/trellis-garden/trellis/pkg/federation/reservations"
)

// clusterView shows decisions the clusters of the fleet. They are read after an event only.
type clusterView struct {
	reader  client.Reader
	surveys *surveys
	// firstAnswer is how long decisions wait for members that have just come.
	firstAnswer time.Duration
	// changes counts the events.
	changes atomic.Int64

	mu         sync.Mutex
	seen       int64
	filled     bool
	translated karmada.Snapshots
	listed     []clusterv1alpha1.Cluster
	latest     core.Snapshot
	begun      reservations.Surveys
	begunAt    time.Time
}

// surveysAge is how old the times of the surveys may be: a survey that finds what the one before it found makes no
// event.
const surveysAge = time.Second

// snapshot is never older than the last event, nor than one that was given before.
func (v *clusterView) snapshot(ctx context.Context) (core.Snapshot, reservations.Surveys, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	changes := v.changes.Load()
	if v.filled && v.seen == changes {
		v.refreshSurveys()
		return v.latest, v.begun, nil
	}
	var list clusterv1alpha1.ClusterList
	if err := v.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return core.Snapshot{}, nil, fmt.Errorf("listing clusters: %w", err)
	}
	if !v.filled {
		// The controller that asks members begins when those do that decide.
		v.translated.Await(time.Now().Truncate(time.Second), v.firstAnswer)
	}
	v.latest = v.translated.Of(pointers(list.Items))
	v.listed, v.begunAt = list.Items, time.Time{}
	v.refreshSurveys()
	v.filled, v.seen = true, changes
	return v.latest, v.begun, nil
}

func (v *clusterView) refreshSurveys() {
	if now := time.Now(); now.Sub(v.begunAt) > surveysAge {
		v.begun, v.begunAt = v.surveysOf(v.listed, now), now
	}
}

// alone gives the clusters without their surveys.
func (v *clusterView) alone(ctx context.Context) (core.Snapshot, error) {
	clusters, _, err := v.snapshot(ctx)
	return clusters, err
}

func pointers(items []clusterv1alpha1.Cluster) iter.Seq[*clusterv1alpha1.Cluster] {
	return func(yield func(*clusterv1alpha1.Cluster) bool) {
		for i := range items {
			if !yield(&items[i]) {
				return
			}
		}
	}
}

// surveysOf tells of the surveys that the clusters show. What one shows that is not ready may be of any age.
func (v *clusterView) surveysOf(items []clusterv1alpha1.Cluster, now time.Time) reservations.Surveys {
	result := reservations.Surveys{}
	for i := range items {
		begun := v.surveys.of(items[i].Name, items[i].Status.ResourceSummary, now)
		ready := meta.FindStatusCondition(items[i].Status.Conditions, clusterv1alpha1.ConditionReady)
		if !begun.IsZero() && ready != nil && ready.Status == metav1.ConditionTrue {
			result[items[i].Name] = reservations.Survey{Begun: begun, Ready: ready.LastTransitionTime.Time}
		}
	}
	return result
}

// clusterChanged tells the view of every event, and wakes the bindings that concerned names.
func clusterChanged(
	view *clusterView, concerned func(before, after *core.Cluster) []types.NamespacedName,
) handler.TypedEventHandler[*clusterv1alpha1.Cluster, reconcile.Request] {
	wake := func(before, after *clusterv1alpha1.Cluster,
		queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		view.changes.Add(1)
		for _, key := range concerned(translated(before), translated(after)) {
			queue.Add(reconcile.Request{NamespacedName: key})
		}
	}
	return handler.TypedFuncs[*clusterv1alpha1.Cluster, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*clusterv1alpha1.Cluster],
			queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(nil, e.Object, queue)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*clusterv1alpha1.Cluster],
			queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.ObjectOld, e.ObjectNew, queue)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*clusterv1alpha1.Cluster],
			queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.Object, nil, queue)
		},
	}
}

func translated(cluster *clusterv1alpha1.Cluster) *core.Cluster {
	if cluster == nil {
		return nil
	}
	var translator karmada.Translator
	result := translator.Cluster(cluster)
	return &result
}
