package extension

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// action is what there is to do for an object.
type action string

const (
	actionNone      action = "none"
	actionReconcile action = "reconcile"
	actionDelete    action = "delete"
	actionMigrate   action = "migrate"
	actionRestore   action = "restore"
)

// decide tells what is to be done for an object. A changed specification alone is no reason to act: gardenlet asks by
// the operation annotation. An operation that did not succeed is repeated, also after a restart of the controller.
func decide(object extensionsv1alpha1.Object) action {
	operation := object.GetAnnotations()[gardencorev1beta1.GardenerOperation]
	last := object.GetExtensionStatus().LastOperation
	switch {
	case operation == gardencorev1beta1.GardenerOperationMigrate:
		return actionMigrate
	case operation == gardencorev1beta1.GardenerOperationRestore && object.GetDeletionTimestamp() == nil:
		return actionRestore
	case last != nil && last.Type == gardencorev1beta1.LastOperationTypeMigrate &&
		last.State == gardencorev1beta1.LastOperationStateSucceeded:
		// It lives in another seed now. Its deletion here must not touch the infrastructure.
		return actionNone
	case object.GetDeletionTimestamp() != nil:
		return actionDelete
	case operation == gardencorev1beta1.GardenerOperationWaitForState:
		return actionNone
	case operation == gardencorev1beta1.GardenerOperationReconcile, last == nil:
		return actionReconcile
	case last.State == gardencorev1beta1.LastOperationStateSucceeded:
		return actionNone
	}
	return unfinished(last.Type)
}

func unfinished(operation gardencorev1beta1.LastOperationType) action {
	switch operation {
	case gardencorev1beta1.LastOperationTypeMigrate:
		return actionMigrate
	case gardencorev1beta1.LastOperationTypeRestore:
		return actionRestore
	}
	return actionReconcile
}

// operationType is what an action is called in lastOperation: an unfinished creation stays one.
func operationType(todo action, last *gardencorev1beta1.LastOperation) gardencorev1beta1.LastOperationType {
	switch todo {
	case actionDelete:
		return gardencorev1beta1.LastOperationTypeDelete
	case actionMigrate:
		return gardencorev1beta1.LastOperationTypeMigrate
	case actionRestore:
		return gardencorev1beta1.LastOperationTypeRestore
	}
	if last == nil {
		return gardencorev1beta1.LastOperationTypeCreate
	}
	if last.Type == gardencorev1beta1.LastOperationTypeCreate &&
		last.State != gardencorev1beta1.LastOperationStateSucceeded {
		return gardencorev1beta1.LastOperationTypeCreate
	}
	return gardencorev1beta1.LastOperationTypeReconcile
}

// verbs describe actions to readers of lastOperation.
var verbs = map[action]struct{ doing, done, failed string }{
	actionReconcile: {"Reconciling the %s", "Successfully reconciled %s", "Error reconciling %s"},
	actionDelete:    {"Deleting the %s", "Successfully deleted %s", "Error deleting %s"},
	actionMigrate:   {"Migrating the %s", "Successfully migrated %s", "Error migrating %s"},
	actionRestore:   {"Restoring the %s", "Successfully restored %s", "Error restoring %s"},
}

func lastOperation(kind gardencorev1beta1.LastOperationType, state gardencorev1beta1.LastOperationState, progress int32,
	description string) *gardencorev1beta1.LastOperation {
	return &gardencorev1beta1.LastOperation{
		Type: kind, State: state, Progress: progress, Description: description, LastUpdateTime: metav1.Now(),
	}
}

// isWanted tells whether an event is worth looking at: something asks for an action. Events that only show this
// controller's own progress must not count, they would defeat the back-off after errors.
func isWanted(before, after extensionsv1alpha1.Object) bool {
	if decide(after) == actionNone {
		return false
	}
	if before == nil {
		return true
	}
	deletionAsked := (before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil)
	return deletionAsked || asksAnew(before.GetAnnotations(), after.GetAnnotations())
}

func asksAnew(before, after map[string]string) bool {
	operation := after[gardencorev1beta1.GardenerOperation]
	if operation == "" {
		return false
	}
	return before[gardencorev1beta1.GardenerOperation] != operation ||
		before[gardencorev1beta1.GardenerTimestamp] != after[gardencorev1beta1.GardenerTimestamp]
}
