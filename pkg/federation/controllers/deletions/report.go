package deletions

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/budget"
)

// reportEvery is between two writes of what the gate knows of a cluster.
const reportEvery = 2 * time.Second

// New makes a gate, and has the manager report what it holds.
func New(mgr manager.Manager, settings budget.Settings) (*Gate, error) {
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	g := &Gate{
		client: mgr.GetClient(), events: mgr.GetEventRecorder("deletions"), now: time.Now, settings: settings,
		recent: map[string]budget.Recent{}, passed: map[types.UID]bool{}, unsaved: map[string]bool{},
		counts: map[string]budget.Count{},
	}
	return g, mgr.Add(manager.RunnableFunc(g.run))
}

func (g *Gate) run(ctx context.Context) error {
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			g.report(ctx)
		}
	}
}

// report writes what changed; what fails is written the next time.
func (g *Gate) report(ctx context.Context) {
	g.mu.Lock()
	names := slices.Sorted(maps.Keys(g.unsaved))
	g.unsaved = map[string]bool{}
	g.mu.Unlock()
	for _, name := range names {
		if err := g.reportCluster(ctx, name); err != nil {
			logr.FromContextOrDiscard(ctx).V(1).Info("Cannot report deletions yet", "cluster", name, "error",
				err.Error())
			g.changed(name)
		}
	}
}

func (g *Gate) reportCluster(ctx context.Context, name string) error {
	cluster := &clusterv1alpha1.Cluster{}
	if err := g.client.Get(ctx, types.NamespacedName{Name: name}, cluster); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := g.saveRecent(ctx, cluster); err != nil {
		return err
	}
	held, err := g.heldIn(ctx, name)
	if err != nil {
		return err
	}
	before := cluster.DeepCopy()
	if !setHeld(cluster, held) {
		return nil
	}
	if err := g.client.Status().Patch(ctx, cluster,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return err
	}
	if held > 0 && !meta.IsStatusConditionTrue(before.Status.Conditions, clusterv1alpha1.ConditionDeletionHeld) {
		g.events.Eventf(cluster, nil, corev1.EventTypeWarning, "DeletionHeld", "Delete", "%s", heldMessage(name, held))
	}
	if held > 0 {
		g.changed(name)
	}
	return nil
}

// saveRecent keeps the count of recent deletions for the next process.
func (g *Gate) saveRecent(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	g.mu.Lock()
	recent, known := g.recent[cluster.Name]
	text := ""
	if known {
		recent.Within(g.settings.Window, g.now())
		text = recent.String()
	}
	g.mu.Unlock()
	if !known || cluster.Annotations[clusterv1alpha1.DeletionsAnnotation] == text {
		return nil
	}
	before := cluster.DeepCopy()
	if cluster.Annotations == nil {
		cluster.Annotations = map[string]string{}
	}
	cluster.Annotations[clusterv1alpha1.DeletionsAnnotation] = text
	return g.client.Patch(ctx, cluster, client.MergeFrom(before))
}

func (g *Gate) heldIn(ctx context.Context, cluster string) (int, error) {
	var works workv1alpha1.WorkList
	if err := g.client.List(ctx, &works, client.InNamespace(clusterv1alpha1.ExecutionNamespace(cluster)),
		client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("listing the Works of cluster %s: %w", cluster, err)
	}
	held := 0
	for i := range works.Items {
		if works.Items[i].DeletionHeld() {
			held++
		}
	}
	return held, nil
}

// setHeld gives false if nothing changes.
func setHeld(cluster *clusterv1alpha1.Cluster, held int) bool {
	if held == 0 {
		return meta.RemoveStatusCondition(&cluster.Status.Conditions, clusterv1alpha1.ConditionDeletionHeld)
	}
	return meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ConditionDeletionHeld, Status: metav1.ConditionTrue, Reason: "BudgetExceeded",
		Message: heldMessage(cluster.Name, held),
	})
}

func heldMessage(cluster string, held int) string {
	return fmt.Sprintf("The deletion of %d objects waits for a confirmation. %s", held, howTo(cluster))
}
