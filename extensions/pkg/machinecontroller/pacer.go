package machinecontroller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// pacer keeps the deletion of machines going. The machine controller takes six steps to delete a machine and rests
// five seconds after each, half a minute for nothing. It looks at a machine at once when an annotation about
// preservation changes, which means nothing for a machine that is being deleted; so the pacer changes that after each
// step that went well. After failures the machine controller's own pace is right.
type pacer struct {
	client client.Client
}

// patchTimeout bounds one change of an annotation.
const patchTimeout = 10 * time.Second

func addPacer(mgr manager.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("machine-pacer").
		For(&machinev1alpha1.Machine{}, builder.WithPredicates(stepsTaken())).Complete(&pacer{client: mgr.GetClient()})
	if err != nil {
		return fmt.Errorf("adding the controller that paces deletions: %w", err)
	}
	return nil
}

// stepsTaken passes machines whose deletion has just got to another step.
func stepsTaken() predicate.Predicate {
	never := func(client.Object) bool { return false }
	steps := predicate.NewPredicateFuncs(never)
	steps.UpdateFunc = func(e event.UpdateEvent) bool {
		before, known := e.ObjectOld.(*machinev1alpha1.Machine)
		after, ok := e.ObjectNew.(*machinev1alpha1.Machine)
		return known && ok && tookStep(before, after)
	}
	return steps
}

// Reconcile implements reconcile.Reconciler: it has the machine controller look at the machine. What fails is not
// repeated, as the machine controller comes by itself.
func (p *pacer) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, patchTimeout)
	defer cancel()
	machine := &machinev1alpha1.Machine{}
	err := p.client.Get(ctx, request.NamespacedName, machine)
	if err == nil && machine.DeletionTimestamp != nil {
		err = p.client.Patch(ctx, machine, client.RawPatch(types.MergePatchType, nudgePatch(machine)))
	}
	if client.IgnoreNotFound(err) != nil {
		log.FromContext(ctx).V(1).Info("a machine is deleted at the usual pace", "reason", err.Error())
	}
	return reconcile.Result{}, nil
}

// steps are the marks in the description of a machine's last operation that name the next step of its deletion.
var steps = []string{
	machineutils.GetVMStatus, machineutils.InitiateDrain, machineutils.DelVolumesAttachments,
	machineutils.InitiateVMDeletion, machineutils.InitiateNodeDeletion, machineutils.InitiateFinalizerRemoval,
}

// stepOf is the number of the step, or -1.
func stepOf(machine *machinev1alpha1.Machine) int {
	return slices.IndexFunc(steps,
		func(mark string) bool { return strings.Contains(machine.Status.LastOperation.Description, mark) })
}

// tookStep tells whether a machine's deletion has got to another step. Repetitions of one are none, so nudging ends.
func tookStep(before, after *machinev1alpha1.Machine) bool {
	return after.DeletionTimestamp != nil &&
		after.Status.LastOperation.State == machinev1alpha1.MachineStateProcessing &&
		stepOf(after) >= 0 && stepOf(after) != stepOf(before)
}

// nudgePatch changes the annotation between absent and "false", which both mean: not to be preserved.
func nudgePatch(machine *machinev1alpha1.Machine) []byte {
	var value any
	if machine.Annotations[machineutils.PreserveMachineAnnotationKey] == "" {
		value = machineutils.PreserveMachineAnnotationValueFalse
	}
	// Encoding maps of strings cannot fail.
	patch, _ := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{machineutils.PreserveMachineAnnotationKey: value}},
	})
	return patch
}
