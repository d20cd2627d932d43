package extension

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apply"
)

// States are what extensions had reported in status.state on another seed.
type States map[StateKey]*runtime.RawExtension

// StateKey is whose state it is.
type StateKey struct{ Kind, Name string }

type statesKey struct{}

// WithStates returns the context of an operation that restores a shoot: objects that Deploy makes under it begin with
// what they had on another seed, and their extensions are asked to restore them instead of reconciling them.
func WithStates(ctx context.Context, states States) context.Context {
	return context.WithValue(ctx, statesKey{}, states)
}

// request is the operation that the extension is asked for.
func request(ctx context.Context, object Object) string {
	states, restoring := ctx.Value(statesKey{}).(States)
	last := object.GetExtensionStatus().LastOperation
	switch {
	case restoring && last == nil && states[keyOf(object)] != nil:
		return gardencorev1beta1.GardenerOperationWaitForState
	case restoring, isRestoring(last):
		return gardencorev1beta1.GardenerOperationRestore
	}
	return gardencorev1beta1.GardenerOperationReconcile
}

// isRestoring tells of a restore that did not succeed yet. To reconcile such an object would make anew what there is
// already.
func isRestoring(last *gardencorev1beta1.LastOperation) bool {
	return last != nil && last.Type == gardencorev1beta1.LastOperationTypeRestore &&
		last.State != gardencorev1beta1.LastOperationStateSucceeded
}

// keyOf says which state is that of an object.
func keyOf(object Object) StateKey { return StateKey{Kind: kindOf(object), Name: object.GetName()} }

// giveState gives an object that waits for it the state that it had, and then asks for the restore. Stopped in between,
// it is done again.
func giveState(ctx context.Context, c client.Client, object Object) error {
	if object.GetAnnotations()[gardencorev1beta1.GardenerOperation] !=
		gardencorev1beta1.GardenerOperationWaitForState {
		return nil
	}
	states, _ := ctx.Value(statesKey{}).(States)
	before := object.DeepCopyObject().(client.Object)
	object.GetExtensionStatus().State = states[keyOf(object)].DeepCopy()
	if err := c.Status().Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("giving %s its state: %w", apply.Describe(c.Scheme(), object), err)
	}
	before = object.DeepCopyObject().(client.Object)
	annotate(object, gardencorev1beta1.GardenerOperation, gardencorev1beta1.GardenerOperationRestore)
	annotate(object, gardencorev1beta1.GardenerTimestamp, time.Now().UTC().Format(time.RFC3339Nano))
	if err := c.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("asking for the restore of %s: %w", apply.Describe(c.Scheme(), object), err)
	}
	return nil
}

// StateOf is what an object has for another seed; nil if nothing.
func StateOf(object extensionsv1alpha1.Object) *runtime.RawExtension {
	if state := object.GetExtensionStatus().State; state != nil && len(state.Raw) > 0 {
		return state
	}
	return nil
}

// Migrate asks an extension to let go of an object, whose shoot another seed has, unless it did already.
func Migrate(ctx context.Context, c client.Client, object Object) error {
	if IsMigrated(object) {
		return nil
	}
	before := client.MergeFrom(object.DeepCopyObject().(client.Object))
	annotate(object, gardencorev1beta1.GardenerOperation, gardencorev1beta1.GardenerOperationMigrate)
	annotate(object, gardencorev1beta1.GardenerTimestamp, time.Now().UTC().Format(time.RFC3339Nano))
	if err := client.IgnoreNotFound(c.Patch(ctx, object, before)); err != nil {
		return fmt.Errorf("asking to let go of %s: %w", apply.Describe(c.Scheme(), object), err)
	}
	return nil
}

// IsMigrated tells whether an extension has let go of an object. From then on, its deletion deletes nothing else.
func IsMigrated(object extensionsv1alpha1.Object) bool {
	last := object.GetExtensionStatus().LastOperation
	return last != nil && last.Type == gardencorev1beta1.LastOperationTypeMigrate &&
		last.State == gardencorev1beta1.LastOperationStateSucceeded
}
