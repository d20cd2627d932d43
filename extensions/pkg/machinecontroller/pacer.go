package machinecontroller

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/client/clientset/versioned"
	"github.com/gardener/machine-controller-manager/pkg/client/informers/externalversions"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machineutils"
	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// pacer keeps the deletion of machines going. The machine controller takes six steps to delete a machine and rests five seconds
// after each, half a minute for nothing. It looks at a machine at once when an annotation about preservation changes, which
// means nothing for a machine that is being deleted; so the pacer changes that after each step that went well. After failures
// the machine controller's own pace is right.
type pacer struct {
	client    versioned.Interface
	namespace string
	log       logr.Logger
}

// patchTimeout bounds one change of an annotation.
const patchTimeout = 10 * time.Second

func newPacer(client versioned.Interface, namespace string, log logr.Logger) *pacer {
	return &pacer{client: client, namespace: namespace, log: log}
}

// run works until the context ends.
func (p *pacer) run(ctx context.Context) {
	factory := externalversions.NewFilteredSharedInformerFactory(p.client, 0, p.namespace, nil)
	informer := factory.Machine().V1alpha1().Machines().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		previous, known := before.(*machinev1alpha1.Machine)
		machine, ok := after.(*machinev1alpha1.Machine)
		if known && ok && tookStep(previous, machine) {
			p.nudge(ctx, machine)
		}
	}})
	if err != nil {
		p.log.Error(err, "machines are deleted at the usual pace")
		return
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
}

// steps are the marks in the description of a machine's last operation that name the next step of its deletion.
var steps = []string{
	machineutils.GetVMStatus, machineutils.InitiateDrain, machineutils.DelVolumesAttachments,
	machineutils.InitiateVMDeletion, machineutils.InitiateNodeDeletion, machineutils.InitiateFinalizerRemoval,
}

// stepOf is the number of the step, or -1.
func stepOf(machine *machinev1alpha1.Machine) int {
	return slices.IndexFunc(steps, func(mark string) bool { return strings.Contains(machine.Status.LastOperation.Description, mark) })
}

// tookStep tells whether a machine's deletion has got to another step. Repetitions of one are none, so nudging ends.
func tookStep(before, after *machinev1alpha1.Machine) bool {
	return after.DeletionTimestamp != nil &&
		after.Status.LastOperation.State == machinev1alpha1.MachineStateProcessing &&
		stepOf(after) >= 0 && stepOf(after) != stepOf(before)
}

func (p *pacer) nudge(ctx context.Context, machine *machinev1alpha1.Machine) {
	ctx, cancel := context.WithTimeout(ctx, patchTimeout)
	defer cancel()
	_, err := p.client.MachineV1alpha1().Machines(machine.Namespace).Patch(ctx, machine.Name, types.MergePatchType, nudgePatch(machine), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		p.log.V(1).Info("a machine is deleted at the usual pace", "machine", machine.Name, "reason", err.Error())
	}
}

// nudgePatch changes the annotation between absent and "false", which both mean: not to be preserved.
func nudgePatch(machine *machinev1alpha1.Machine) []byte {
	var value any
	if machine.Annotations[machineutils.PreserveMachineAnnotationKey] == "" {
		value = machineutils.PreserveMachineAnnotationValueFalse
	}
	// Encoding maps of strings cannot fail.
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{machineutils.PreserveMachineAnnotationKey: value}}})
	return patch
}
