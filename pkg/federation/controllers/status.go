package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
	"github.com/trellis-garden/trellis/pkg/federation/controllers/rollouts"
	"github.com/trellis-garden/trellis/pkg/federation/failover"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// reportStatus writes what was decided, and what became of the object in the members, into the binding, and adds it up
// in the object.
func (w *works) reportStatus(ctx context.Context, b bindings.Binding, template *unstructured.Unstructured,
	existing map[string]*workv1alpha1.Work, failures map[string]error, stage *rollouts.Stage) error {
	before := b.DeepCopyObject().(bindings.Binding)
	status := b.BindingStatus()
	karmada.Explain(b)
	stage.Report(status)
	status.AggregatedStatus = aggregatedStatus(b, existing, failures)
	status.AggregatedGeneration = aggregatedGeneration(b, existing)
	status.UnhealthyCopies = failover.NoteUnhealthy(b.BindingSpec(), status, w.now())
	setFullyApplied(b)
	if err := bindings.PatchStatus(ctx, w.client, before, b); err != nil {
		return err
	}
	for _, item := range status.AggregatedStatus {
		if failure := failures[item.ClusterName]; failure != nil && !hasMessage(before, item) {
			w.overrideFailed(b, template, item.ClusterName, failure)
		}
	}
	return w.updateTemplate(ctx, template, status.AggregatedStatus, len(bindings.Targets(b.BindingSpec())))
}

func hasMessage(b bindings.Binding, item workv1alpha2.AggregatedStatusItem) bool {
	return slices.ContainsFunc(b.BindingStatus().AggregatedStatus, func(old workv1alpha2.AggregatedStatusItem) bool {
		return old.ClusterName == item.ClusterName && old.AppliedMessage == item.AppliedMessage
	})
}

// aggregatedStatus has one item per target cluster that something is known of, in the order of their names.
func aggregatedStatus(b bindings.Binding, existing map[string]*workv1alpha1.Work,
	failures map[string]error) []workv1alpha2.AggregatedStatusItem {
	var items []workv1alpha2.AggregatedStatusItem
	for _, target := range bindings.Targets(b.BindingSpec()) {
		work, failure := existing[target.Name], failures[target.Name]
		if failure == nil && (work == nil || len(work.Status.Conditions) == 0) {
			continue
		}
		item := workv1alpha2.AggregatedStatusItem{ClusterName: target.Name}
		if work != nil {
			item = statusItem(target.Name, work)
		}
		if failure != nil {
			item.Applied, item.AppliedMessage = false, failure.Error()
		}
		items = append(items, item)
	}
	boundStatuses(items)
	slices.SortFunc(items, func(a, b workv1alpha2.AggregatedStatusItem) int {
		return strings.Compare(a.ClusterName, b.ClusterName)
	})
	return items
}

func statusItem(cluster string, work *workv1alpha1.Work) workv1alpha2.AggregatedStatusItem {
	item := workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Health: workv1alpha2.ResourceUnknown}
	applied := meta.FindStatusCondition(work.Status.Conditions, workv1alpha1.ConditionApplied)
	item.Applied = applied != nil && applied.Status == metav1.ConditionTrue
	if applied != nil && (!item.Applied || applied.Reason == workv1alpha1.ReasonNotInterpreted) {
		item.AppliedMessage = applied.Message
	}
	if len(work.Status.ManifestStatuses) > 0 {
		first := work.Status.ManifestStatuses[0]
		// A copy: the answer to a write is decoded into it.
		item.Status = first.Status.DeepCopy()
		if first.Health != "" {
			item.Health = workv1alpha2.ResourceHealth(first.Health)
		}
	}
	return item
}

// setFullyApplied: every target cluster has the object.
func setFullyApplied(b bindings.Binding) {
	condition := metav1.Condition{
		Type: workv1alpha2.ConditionFullyApplied, Status: metav1.ConditionTrue,
		Reason: workv1alpha2.ReasonFullyAppliedSuccess, Message: "All target clusters have the object",
	}
	if waiting := notApplied(b); len(waiting) > 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, workv1alpha2.ReasonFullyAppliedFailed
		condition.Message = shorten(strings.Join(waiting, "; "))
	} else if len(bindings.Targets(b.BindingSpec())) == 0 {
		condition.Status, condition.Reason = metav1.ConditionFalse, workv1alpha2.ReasonFullyAppliedFailed
		condition.Message = "No cluster was chosen yet"
	}
	meta.SetStatusCondition(&b.BindingStatus().Conditions, condition)
}

func notApplied(b bindings.Binding) []string {
	items := map[string]workv1alpha2.AggregatedStatusItem{}
	for _, item := range b.BindingStatus().AggregatedStatus {
		items[item.ClusterName] = item
	}
	var waiting []string
	for _, target := range bindings.Targets(b.BindingSpec()) {
		switch item := items[target.Name]; {
		case item.Applied:
		case item.AppliedMessage != "":
			waiting = append(waiting, target.Name+": "+item.AppliedMessage)
		default:
			waiting = append(waiting, target.Name+": not applied yet")
		}
	}
	return waiting
}

// clearStatus shows in an object that stays, but runs in no member any more, that it does.
func (w *works) clearStatus(ctx context.Context, b bindings.Binding) error {
	template, err := bindings.GetTemplate(ctx, w.client, bindings.TemplateOf(b))
	if err != nil || template == nil || template.GetDeletionTimestamp() != nil {
		return err
	}
	return w.updateTemplate(ctx, template, nil, 0)
}

// updateTemplate adds the members' statuses up in the object's own, if something is known of its kind.
func (w *works) updateTemplate(ctx context.Context, template *unstructured.Unstructured,
	items []workv1alpha2.AggregatedStatusItem, wanted int) error {
	status, known, err := w.interpreter.Aggregate(ctx, template, items, wanted)
	if err != nil {
		w.events.Eventf(template, nil, corev1.EventTypeWarning, "AggregateStatusFailed", "Aggregate", "%v", err)
		return err
	}
	if !known || apiequality.Semantic.DeepEqual(status, template.Object["status"]) {
		return nil
	}
	updated := template.DeepCopy()
	updated.Object["status"] = status
	if err := w.client.Status().Patch(ctx, updated, client.MergeFrom(template)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the status of %s %s: %w", template.GetKind(), client.ObjectKeyFromObject(template),
			err)
	}
	return nil
}
