package registry

import (
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// operationPrefixes begin operations that gardenlet carries out and then removes itself.
var operationPrefixes = []string{
	"rotate-", "rollout-workers=", "rotate-rollout-workers=", gardencorev1beta1.ShootOperationRestoreETCD + "=",
}

// included are the operations that a wider one carries out too.
var included = map[string][]string{
	gardencorev1beta1.OperationRotateCredentialsStart: {
		gardencorev1beta1.OperationRotateCAStart, gardencorev1beta1.OperationRotateServiceAccountKeyStart,
		gardencorev1beta1.OperationRotateETCDEncryptionKey,
		gardencorev1beta1.OperationRotateObservabilityCredentials, gardencorev1beta1.ShootOperationRotateSSHKeypair,
	},
	gardencorev1beta1.OperationRotateCredentialsStartWithoutWorkersRollout: {
		gardencorev1beta1.OperationRotateCAStartWithoutWorkersRollout,
		gardencorev1beta1.OperationRotateServiceAccountKeyStartWithoutWorkersRollout,
		gardencorev1beta1.OperationRotateETCDEncryptionKey, gardencorev1beta1.OperationRotateObservabilityCredentials,
		gardencorev1beta1.ShootOperationRotateSSHKeypair,
	},
	gardencorev1beta1.OperationRotateCredentialsComplete: {
		gardencorev1beta1.OperationRotateCAComplete, gardencorev1beta1.OperationRotateServiceAccountKeyComplete,
	},
}

// shootNeedsNewGeneration tells whether gardenlet has to act on a write. An operation that the new generation alone
// carries out is taken out of the annotation.
func shootNeedsNewGeneration(shoot, old *gardencorev1beta1.Shoot) bool {
	requested := false
	if last := old.Status.LastOperation; last != nil {
		dropNeedlessOperations(shoot)
		requested = takeOperation(shoot, last.State)
		// A shoot that has failed waits for "retry", unless another state of its API is to be restored.
		requested = requested || (last.State != gardencorev1beta1.LastOperationStateFailed ||
			requestsRestore(shoot, old)) && requestsLastingOperation(shoot, old)
	}
	return requested ||
		specNeedsNewGeneration(shoot, old) ||
		(shoot.DeletionTimestamp != nil && old.DeletionTimestamp == nil) ||
		(gardencorev1beta1.NeedsForceDeletion(shoot) && !gardencorev1beta1.NeedsForceDeletion(old))
}

// dropNeedlessOperations drops what a wider operation carries out too, and the rotation of an SSH key that nobody uses.
func dropNeedlessOperations(shoot *gardencorev1beta1.Shoot) {
	wanted := gardencorev1beta1.SplitOperations(shoot.Annotations[gardencorev1beta1.GardenerOperation])
	needless := sets.New[string]()
	for _, operation := range wanted {
		needless.Insert(included[operation]...)
	}
	if gardencorev1beta1.IsWorkerless(shoot) || !gardencorev1beta1.SSHAccessEnabled(&shoot.Spec) {
		needless.Insert(gardencorev1beta1.ShootOperationRotateSSHKeypair)
	}
	if slices.ContainsFunc(wanted, needless.Has) {
		setOperations(shoot, slices.DeleteFunc(wanted, needless.Has))
	}
}

func setOperations(object metav1.Object, operations []string) {
	annotations := object.GetAnnotations()
	if len(operations) > 0 {
		annotations[gardencorev1beta1.GardenerOperation] = strings.Join(operations, ";")
	} else {
		delete(annotations, gardencorev1beta1.GardenerOperation)
	}
}

// takeOperation removes "reconcile", or "retry" from a shoot that has failed, and tells whether it was there.
func takeOperation(shoot *gardencorev1beta1.Shoot, state gardencorev1beta1.LastOperationState) bool {
	wanted := gardencorev1beta1.SplitOperations(shoot.Annotations[gardencorev1beta1.GardenerOperation])
	carriedOut := gardencorev1beta1.GardenerOperationReconcile
	if state == gardencorev1beta1.LastOperationStateFailed {
		carriedOut = gardencorev1beta1.GardenerOperationRetry
	}
	at := slices.Index(wanted, carriedOut)
	if at < 0 || (carriedOut == gardencorev1beta1.GardenerOperationRetry && len(wanted) > 1) {
		return false
	}
	setOperations(shoot, slices.Delete(wanted, at, at+1))
	return true
}

// specNeedsNewGeneration: with confineSpecUpdateRollout, changes wait for the maintenance window; hibernation does not.
func specNeedsNewGeneration(shoot, old *gardencorev1beta1.Shoot) bool {
	confined := shoot.Spec.Maintenance != nil && ptr.Deref(shoot.Spec.Maintenance.ConfineSpecUpdateRollout, false)
	bound := !ptr.Equal(shoot.Spec.SeedName, old.Spec.SeedName)
	if confined && !bound {
		return hibernationWanted(shoot) != hibernationWanted(old)
	}
	return !apiequality.Semantic.DeepEqual(shoot.Spec, old.Spec)
}

func hibernationWanted(shoot *gardencorev1beta1.Shoot) bool {
	return shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false)
}

// requestsLastingOperation tells whether an operation was added that gardenlet removes when it is done.
func requestsLastingOperation(shoot, old *gardencorev1beta1.Shoot) bool {
	before := gardencorev1beta1.SplitOperations(old.Annotations[gardencorev1beta1.GardenerOperation])
	return slices.ContainsFunc(gardencorev1beta1.SplitOperations(
		shoot.Annotations[gardencorev1beta1.GardenerOperation]), func(operation string) bool {
		return !slices.Contains(before, operation) && slices.ContainsFunc(operationPrefixes, func(prefix string) bool {
			return strings.HasPrefix(operation, prefix)
		})
	})
}

func requestsRestore(shoot, old *gardencorev1beta1.Shoot) bool {
	operation, _, _ := gardencorev1beta1.RestoreOperation(shoot)
	before, _, _ := gardencorev1beta1.RestoreOperation(old)
	return operation != "" && operation != before
}

// prepareShootStatus: the end of a migration hands the shoot over to another gardenlet, which acts on new generations;
// and so does the second half of a rotation that follows by itself.
func prepareShootStatus(shoot, old *gardencorev1beta1.Shoot) {
	if (endsMigration(shoot.Status.LastOperation) && !endsMigration(old.Status.LastOperation)) ||
		(completesByItself(shoot) && !completesByItself(old)) {
		shoot.Generation = old.Generation + 1
	}
}

func endsMigration(operation *gardencorev1beta1.LastOperation) bool {
	return operation != nil && operation.Type == gardencorev1beta1.LastOperationTypeMigrate &&
		(operation.State == gardencorev1beta1.LastOperationStateSucceeded ||
			operation.State == gardencorev1beta1.LastOperationStateAborted)
}

// completesByItself tells whether a rotation of the key for encryption at rest is to be completed now, without being
// asked to.
func completesByItself(shoot *gardencorev1beta1.Shoot) bool {
	credentials := shoot.Status.Credentials
	if credentials == nil || credentials.Rotation == nil || credentials.Rotation.ETCDEncryptionKey == nil {
		return false
	}
	rotation := credentials.Rotation.ETCDEncryptionKey
	return rotation.Phase == gardencorev1beta1.RotationPrepared && ptr.Deref(rotation.AutoCompleteAfterPrepared, false)
}
