package growth

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/growth"
	"github.com/trellis-garden/trellis/pkg/federation/growth/shoots"
)

// demandTimeout is how old the demand may be: nothing is done by an older one.
const demandTimeout = 2 * time.Minute

// act decides and carries out, and says in the status what became of it.
func (w *world) act(ctx context.Context, object *fleetv1alpha1.FleetGrowth) {
	if !w.pools {
		w.notAllowed(object)
		return
	}
	w.allowed(object)
	w.observe(object)
	object.Status.ObservedGeneration = object.Generation
	demand := object.Status.Demand
	if demand == nil || w.now.Sub(demand.ObservedTime.Time) > demandTimeout ||
		demand.ObservedGeneration != object.Generation && object.DeletionTimestamp == nil {
		w.unknown(object)
		return
	}
	w.noteUnused(object)
	in, err := w.input(object)
	if err != nil {
		w.invalid(object, err)
		return
	}
	out := growth.Decide(in)
	for _, action := range out.Actions {
		err := w.carryOut(ctx, object, action)
		w.record(object, action, err)
		log := w.log(ctx, object).WithValues("action", action.Kind, "shoot", action.Shoot, "pool", action.Pool,
			"minimum", action.Minimum, "maximum", action.Maximum)
		if err != nil {
			log.Error(err, "A decision could not be carried out")
		} else {
			log.Info("Decided", "reason", action.Reason)
		}
	}
	w.summarize(object, out)
}

// noteUnused remembers since when created shoots are not used.
func (w *world) noteUnused(object *fleetv1alpha1.FleetGrowth) {
	var unused []fleetv1alpha1.UnusedShoot
	for i := range w.shoots {
		name := w.shoots[i].Name
		if !w.isGrown(&w.shoots[i], object.Name) || slices.Contains(object.Status.Demand.Used, name) {
			continue
		}
		entry := fleetv1alpha1.UnusedShoot{Name: name, Since: metav1.NewTime(w.now)}
		for _, known := range object.Status.Unused {
			if known.Name == name {
				entry = known
			}
		}
		unused = append(unused, entry)
	}
	object.Status.Unused = unused
}

func (w *world) carryOut(ctx context.Context, object *fleetv1alpha1.FleetGrowth, action growth.Action) error {
	if action.Kind == growth.CreateShoot {
		return w.createShoot(ctx, object, action.Shoot)
	}
	at := slices.IndexFunc(w.shoots, func(s gardencorev1beta1.Shoot) bool { return s.Name == action.Shoot })
	if at < 0 {
		return fmt.Errorf("there is no shoot %s", action.Shoot)
	}
	shoot := &w.shoots[at]
	switch action.Kind {
	case growth.DrainShoot:
		return w.taint(ctx, shoot.Name, true)
	case growth.KeepShoot:
		return w.taint(ctx, shoot.Name, false)
	case growth.DeleteShoot:
		return w.deleteShoot(ctx, shoot)
	}
	return w.changePool(ctx, object, shoot, action)
}

// changePool sets minimum and maximum, and writes beside them what was before. It fails if the Shoot has changed since
// it was read.
func (w *world) changePool(ctx context.Context, object *fleetv1alpha1.FleetGrowth, shoot *gardencorev1beta1.Shoot,
	action growth.Action) error {
	records, err := shoots.Records(shoot)
	if err != nil {
		return err
	}
	changed := shoot.DeepCopy()
	for i := range changed.Spec.Provider.Workers {
		if worker := &changed.Spec.Provider.Workers[i]; worker.Name == action.Pool {
			worker.Minimum, worker.Maximum = int32(action.Minimum), int32(action.Maximum)
		}
	}
	delete(records, action.Pool)
	if r := action.Record; r != nil {
		records[action.Pool] = fleetv1alpha1.PoolRecord{
			Fleet: w.key.Name, Growth: object.Name, Minimum: int32(r.Minimum), Maximum: int32(r.Maximum),
			Nodes:      int32(r.Nodes),
			SetMinimum: int32(r.SetMinimum), SetMaximum: int32(r.SetMaximum), Since: metav1.NewTime(r.Since),
		}
	}
	if err := setRecords(changed, records); err != nil {
		return err
	}
	if err := w.garden.Patch(ctx, changed,
		client.MergeFromWithOptions(shoot.DeepCopy(), client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("changing pool %s of shoot %s: %w", action.Pool, shoot.Name, err)
	}
	*shoot = *changed
	return nil
}

func setRecords(shoot *gardencorev1beta1.Shoot, records map[string]fleetv1alpha1.PoolRecord) error {
	// Records of pools that are gone go too.
	maps.DeleteFunc(records, func(name string, _ fleetv1alpha1.PoolRecord) bool {
		return !slices.ContainsFunc(shoot.Spec.Provider.Workers,
			func(w gardencorev1beta1.Worker) bool { return w.Name == name })
	})
	if len(records) == 0 {
		delete(shoot.Annotations, fleetv1alpha1.GrownPoolsAnnotation)
		return nil
	}
	text, err := json.Marshal(records)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, fleetv1alpha1.GrownPoolsAnnotation, string(text))
	return nil
}

// createShoot creates a shoot of the template. The name is that of the decision, so that a second try creates no second
// shoot.
func (w *world) createShoot(ctx context.Context, object *fleetv1alpha1.FleetGrowth, name string) error {
	spec, err := shoots.Spec(object.Spec.Shoots)
	if err != nil {
		return err
	}
	shoot := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.key.Namespace, Name: name}, Spec: *spec,
	}
	shoot.Labels = maps.Clone(object.Spec.Shoots.Template.Labels)
	metav1.SetMetaDataLabel(&shoot.ObjectMeta, fleetv1alpha1.GrownByLabel, w.key.Name)
	metav1.SetMetaDataLabel(&shoot.ObjectMeta, fleetv1alpha1.GrownForLabel, object.Name)
	if err := w.garden.Create(ctx, shoot); err != nil {
		return fmt.Errorf("creating shoot %s: %w", name, err)
	}
	w.shoots = append(w.shoots, *shoot)
	return nil
}

// deleteShoot confirms the deletion of a shoot that was created, and deletes it.
func (w *world) deleteShoot(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	if shoot.Annotations[gardencorev1beta1.ConfirmationDeletion] != "true" {
		before := shoot.DeepCopy()
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, gardencorev1beta1.ConfirmationDeletion, "true")
		if err := w.garden.Patch(ctx, shoot,
			client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("confirming the deletion of shoot %s: %w", shoot.Name, err)
		}
	}
	preconditions := client.Preconditions{UID: &shoot.UID}
	if err := w.garden.Delete(ctx, shoot, preconditions); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting shoot %s: %w", shoot.Name, err)
	}
	return nil
}

// taint closes a member for new objects, or opens it again.
func (w *world) taint(ctx context.Context, name string, leaving bool) error {
	member := w.clusters[name]
	if member == nil {
		return apierrors.NewNotFound(clusterv1alpha1.GroupVersion.WithResource("clusters").GroupResource(), name)
	}
	before := member.DeepCopy()
	member.Spec.Taints = slices.DeleteFunc(member.Spec.Taints,
		func(t corev1.Taint) bool { return t.Key == fleetv1alpha1.TaintLeaving })
	if leaving {
		member.Spec.Taints = append(member.Spec.Taints, corev1.Taint{
			Key: fleetv1alpha1.TaintLeaving, Effect: corev1.TaintEffectNoSchedule,
			TimeAdded: &metav1.Time{Time: w.now.Truncate(time.Second)},
		})
	}
	if err := w.fleet.Patch(ctx, member,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("taints of cluster %s: %w", name, err)
	}
	return nil
}
