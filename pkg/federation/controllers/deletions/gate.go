// Package deletions is the gate that deletions in members pass. Those that are more than the budget wait for a
// confirmation, and say so on the Work and on the Cluster. What waits is known from the Works themselves, and what was
// deleted lately is kept on the Clusters, so that a new process goes on where the last one stopped.
package deletions

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/budget"
)

const (
	// lookAgain is when a held deletion is looked at again that no event is expected for.
	lookAgain = 30 * time.Second
	// forFleet is the counts' name of the fleet as a whole.
	forFleet = ""
	// countsLast is how long a count is good enough.
	countsLast = 250 * time.Millisecond
)

// Gate that deletions in members pass.
type Gate struct {
	client   client.Client
	events   events.EventRecorder
	now      func() time.Time
	settings budget.Settings

	mu sync.Mutex
	// recent deletions by cluster, as far as they were asked for.
	recent map[string]budget.Recent
	// passed are the Works that were let through, by their UID.
	passed map[types.UID]bool
	// unsaved are the clusters whose annotation or condition may have to be written.
	unsaved map[string]bool
	counts  map[string]budget.Count
	counted time.Time
	// pending are the Works that counts has as pending, by their UID.
	pending map[types.UID]bool
}

// Answer to a Work that is being deleted.
type Answer struct {
	// Go: its objects may be removed from the member.
	Go bool
	// Keep: the Work may go, and its objects stay in the member.
	Keep bool
	// After is when to ask again, with neither of them.
	After time.Duration
}

// Ask whether the objects of a Work that is being deleted may be removed from its cluster.
func (g *Gate) Ask(ctx context.Context, work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster) (Answer, error) {
	if work.Annotations[workv1alpha1.ConfirmDeletionAnnotation] == workv1alpha1.ConfirmDeletionKeep {
		return Answer{Keep: true}, nil
	}
	if g.settings.Off() || confirmed(work, cluster) {
		g.changed(cluster.Name)
		return Answer{Go: true}, nil
	}
	if meta.IsStatusConditionTrue(work.Status.Conditions, workv1alpha1.ConditionDeletionHeld) {
		return g.askHeld(ctx, work, cluster.Name)
	}
	moved, err := g.moved(ctx, work)
	if err != nil || moved {
		return Answer{Go: moved}, err
	}
	decision, err := g.decide(ctx, work, cluster)
	switch {
	case err != nil:
		return Answer{}, err
	case decision.Go:
		return Answer{Go: true}, nil
	case decision.Hold:
		return Answer{After: lookAgain}, g.hold(ctx, work, cluster)
	}
	return Answer{After: decision.Wait}, nil
}

// confirmed tells whether a deletion needs no budget: confirmed by a person or this gate, an eviction, a hibernated
// cluster, or nothing to remove.
func confirmed(work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster) bool {
	switch work.Annotations[workv1alpha1.ConfirmDeletionAnnotation] {
	case workv1alpha1.ConfirmDeletionYes, workv1alpha1.ConfirmDeletionEvicted, workv1alpha1.ConfirmDeletionWithinBudget:
		return true
	}
	if preserve := work.Spec.PreserveResourcesOnDeletion; preserve != nil && *preserve {
		return true
	}
	if cluster.Annotations[clusterv1alpha1.HibernatedAnnotation] == "true" {
		return true
	}
	until, err := time.Parse(time.RFC3339, cluster.Annotations[clusterv1alpha1.ConfirmDeletionAnnotation])
	return err == nil && work.DeletionTimestamp != nil && !work.DeletionTimestamp.After(until)
}

// askHeld takes a deletion back that somebody changed their mind about: the object is wanted there again.
func (g *Gate) askHeld(ctx context.Context, work *workv1alpha1.Work, cluster string) (Answer, error) {
	g.changed(cluster)
	b, err := g.bindingOf(ctx, work)
	if err != nil || b == nil || b.GetDeletionTimestamp() != nil {
		return Answer{After: lookAgain}, err
	}
	for _, target := range bindings.Targets(b.BindingSpec()) {
		if target.Name == cluster {
			return Answer{Keep: true}, nil
		}
	}
	return Answer{After: lookAgain}, nil
}

func (g *Gate) bindingOf(ctx context.Context, work *workv1alpha1.Work) (bindings.Binding, error) {
	key, ok := bindings.OfWork(work)
	if !ok {
		return nil, nil
	}
	return bindings.Get(ctx, g.client, key)
}

// moved: all replicas of the object have a place in other clusters.
func (g *Gate) moved(ctx context.Context, work *workv1alpha1.Work) (bool, error) {
	b, err := g.bindingOf(ctx, work)
	if err != nil || b == nil || b.GetDeletionTimestamp() != nil {
		return false, err
	}
	return bindings.AllPlaced(b.BindingSpec()), nil
}

// decide lets a deletion pass that fits into the budgets of its cluster and of the fleet. One that has passed may come
// again.
func (g *Gate) decide(ctx context.Context, work *workv1alpha1.Work,
	cluster *clusterv1alpha1.Cluster) (budget.Decision, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.passed[work.UID] {
		return budget.Decision{Go: true}, nil
	}
	if err := g.count(ctx); err != nil {
		return budget.Decision{}, err
	}
	if !g.pending[work.UID] { // its deletion was asked for after the count
		g.addPending(work, cluster.Name)
	}
	decision := budget.Both(g.settings.Decide(g.counts[cluster.Name], g.now()),
		g.settings.OfFleet().Decide(g.counts[forFleet], g.now()))
	if decision.Go {
		g.pass(work, cluster.Name)
	}
	return decision, nil
}

func (g *Gate) pass(work *workv1alpha1.Work, cluster string) {
	g.passed[work.UID] = true
	delete(g.pending, work.UID)
	g.recent[cluster].Note(1, g.now())
	g.unsaved[cluster] = true
	for _, scope := range []string{cluster, forFleet} {
		c := g.counts[scope]
		c.Pending, c.Recent = max(c.Pending-1, 0), c.Recent+1
		g.counts[scope] = c
	}
}

// count goes through all Works, unless that was done a moment ago.
func (g *Gate) count(ctx context.Context) error {
	if g.now().Sub(g.counted) < countsLast {
		return nil
	}
	clusters, works, err := g.read(ctx)
	if err != nil {
		return err
	}
	g.counts, g.pending = map[string]budget.Count{}, map[types.UID]bool{}
	for name, cluster := range clusters {
		if g.recent[name] == nil {
			g.recent[name] = budget.ParseRecent(cluster.Annotations[clusterv1alpha1.DeletionsAnnotation])
		}
		recent := g.recent[name].Within(g.settings.Window, g.now())
		g.counts[name] = budget.Count{Recent: recent}
		total := g.counts[forFleet]
		total.Recent += recent
		g.counts[forFleet] = total
	}
	there := map[types.UID]bool{}
	for i := range works {
		g.countWork(&works[i], clusters)
		there[works[i].UID] = true
	}
	for uid := range g.passed {
		if !there[uid] {
			delete(g.passed, uid)
		}
	}
	g.counted = g.now()
	return nil
}

func (g *Gate) countWork(work *workv1alpha1.Work, clusters map[string]*clusterv1alpha1.Cluster) {
	name, ok := clusterv1alpha1.ClusterOf(work.Namespace)
	cluster := clusters[name]
	if !ok || cluster == nil {
		return
	}
	for _, scope := range []string{name, forFleet} {
		c := g.counts[scope]
		c.Total++
		g.counts[scope] = c
	}
	if work.DeletionTimestamp != nil && !confirmed(work, cluster) && !g.passed[work.UID] {
		g.addPending(work, name)
	}
}

func (g *Gate) addPending(work *workv1alpha1.Work, cluster string) {
	g.pending[work.UID] = true
	for _, scope := range []string{cluster, forFleet} {
		c := g.counts[scope]
		c.Pending++
		if work.DeletionTimestamp.After(c.Newest) {
			c.Newest = work.DeletionTimestamp.Time
		}
		g.counts[scope] = c
	}
}

func (g *Gate) read(ctx context.Context) (map[string]*clusterv1alpha1.Cluster, []workv1alpha1.Work, error) {
	var clusters clusterv1alpha1.ClusterList
	var works workv1alpha1.WorkList
	if err := g.client.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing clusters: %w", err)
	}
	if err := g.client.List(ctx, &works, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing Works: %w", err)
	}
	byName := map[string]*clusterv1alpha1.Cluster{}
	for i := range clusters.Items {
		byName[clusters.Items[i].Name] = &clusters.Items[i]
	}
	return byName, works.Items, nil
}

// hold says on the Work that it waits. It waits until somebody confirms it, also if the budget would have room for it
// later.
func (g *Gate) hold(ctx context.Context, work *workv1alpha1.Work, cluster *clusterv1alpha1.Cluster) error {
	before := work.DeepCopy()
	meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
		Type: workv1alpha1.ConditionDeletionHeld, Status: metav1.ConditionTrue, Reason: "BudgetExceeded",
		ObservedGeneration: work.Generation,
		Message: "More objects are to be deleted at once than the fleet's deletion budget allows. " +
			howTo(cluster.Name),
	})
	g.changed(cluster.Name)
	if err := g.client.Status().Patch(ctx, work, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of Work %s: %w", client.ObjectKeyFromObject(work), err)
	}
	return nil
}

func howTo(cluster string) string {
	return "See `trellisctl deletions`; delete them with `trellisctl deletions confirm --cluster " + cluster + "`, " +
		"leave them in the member with `trellisctl deletions keep --cluster " + cluster + "`"
}

func (g *Gate) changed(cluster string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unsaved[cluster] = true
}
