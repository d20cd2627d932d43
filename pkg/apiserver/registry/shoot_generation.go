package registry

import (
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// operationPrefixes begin operations that gardenlet carries out and then removes itself.
var operationPrefixes = []string{"rotate-", "rollout-workers=", "rotate-rollout-workers="}

// operations splits the value of an operation annotation: trimmed, without repetition, in order.
func operations(value string) []string {
	var result []string
	for _, operation := range strings.Split(value, ";") {
		operation = strings.TrimSpace(operation)
		if operation != "" && !slices.Contains(result, operation) {
			result = append(result, operation)
		}
	}
	return result
}

// shootNeedsNewGeneration tells whether gardenlet has to act on a write. An operation that the new generation alone
// carries out is taken out of the annotation.
func shootNeedsNewGeneration(shoot, old *corev1beta1.Shoot) bool {
	requested := old.Status.LastOperation != nil && takeOperation(shoot, old.Status.LastOperation.State)
	return requested ||
		specNeedsNewGeneration(shoot, old) ||
		(shoot.DeletionTimestamp != nil && old.DeletionTimestamp == nil) ||
		isNewlyTrue(shoot, old, corev1beta1.AnnotationConfirmationForceDeletion) ||
		(old.Status.LastOperation != nil && requestsLastingOperation(shoot, old))
}

// takeOperation removes "reconcile", or "retry" from a shoot that has failed, and tells whether it was there.
func takeOperation(shoot *corev1beta1.Shoot, state corev1beta1.LastOperationState) bool {
	wanted := operations(shoot.Annotations[corev1beta1.GardenerOperation])
	carriedOut := corev1beta1.GardenerOperationReconcile
	if state == corev1beta1.LastOperationStateFailed {
		carriedOut = corev1beta1.GardenerOperationRetry
	}
	at := slices.Index(wanted, carriedOut)
	if at < 0 || (carriedOut == corev1beta1.GardenerOperationRetry && len(wanted) > 1) {
		return false
	}
	if rest := slices.Delete(wanted, at, at+1); len(rest) > 0 {
		shoot.Annotations[corev1beta1.GardenerOperation] = strings.Join(rest, ";")
	} else {
		delete(shoot.Annotations, corev1beta1.GardenerOperation)
	}
	return true
}

// specNeedsNewGeneration: with confineSpecUpdateRollout, changes wait for the maintenance window; hibernation does not.
func specNeedsNewGeneration(shoot, old *corev1beta1.Shoot) bool {
	confined := shoot.Spec.Maintenance != nil && ptr.Deref(shoot.Spec.Maintenance.ConfineSpecUpdateRollout, false)
	bound := !ptr.Equal(shoot.Spec.SeedName, old.Spec.SeedName)
	if confined && !bound {
		return hibernationWanted(shoot) != hibernationWanted(old)
	}
	return !apiequality.Semantic.DeepEqual(shoot.Spec, old.Spec)
}

func hibernationWanted(shoot *corev1beta1.Shoot) bool {
	return shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false)
}

func isNewlyTrue(shoot, old *corev1beta1.Shoot, annotation string) bool {
	return shoot.Annotations[annotation] == "true" && old.Annotations[annotation] != "true"
}

// requestsLastingOperation tells whether an operation was added that gardenlet removes when it is done.
func requestsLastingOperation(shoot, old *corev1beta1.Shoot) bool {
	before := operations(old.Annotations[corev1beta1.GardenerOperation])
	return slices.ContainsFunc(operations(shoot.Annotations[corev1beta1.GardenerOperation]), func(operation string) bool {
		return !slices.Contains(before, operation) && slices.ContainsFunc(operationPrefixes, func(prefix string) bool {
			return strings.HasPrefix(operation, prefix)
		})
	})
}

// prepareShootStatus: the end of a migration hands the shoot over to another gardenlet, which acts on new generations.
func prepareShootStatus(shoot, old *corev1beta1.Shoot) {
	if endsMigration(shoot.Status.LastOperation) && !endsMigration(old.Status.LastOperation) {
		shoot.Generation = old.Generation + 1
	}
}

func endsMigration(operation *corev1beta1.LastOperation) bool {
	return operation != nil && operation.Type == corev1beta1.LastOperationTypeMigrate &&
		(operation.State == corev1beta1.LastOperationStateSucceeded || operation.State == corev1beta1.LastOperationStateAborted)
}
