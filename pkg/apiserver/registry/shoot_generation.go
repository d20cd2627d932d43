package registry

import (
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// operationPrefixes begin operations that gardenlet carries out and then removes itself.
var operationPrefixes = []string{"rotate-", "rollout-workers=", "rotate-rollout-workers="}

// included are the operations that a wider one carries out too.
var included = map[string][]string{
	corev1beta1.OperationRotateCredentialsStart: {
		corev1beta1.OperationRotateCAStart, corev1beta1.OperationRotateServiceAccountKeyStart, corev1beta1.OperationRotateETCDEncryptionKey,
		corev1beta1.OperationRotateObservabilityCredentials, corev1beta1.ShootOperationRotateSSHKeypair,
	},
	corev1beta1.OperationRotateCredentialsStartWithoutWorkersRollout: {
		corev1beta1.OperationRotateCAStartWithoutWorkersRollout, corev1beta1.OperationRotateServiceAccountKeyStartWithoutWorkersRollout,
		corev1beta1.OperationRotateETCDEncryptionKey, corev1beta1.OperationRotateObservabilityCredentials, corev1beta1.ShootOperationRotateSSHKeypair,
	},
	corev1beta1.OperationRotateCredentialsComplete: {
		corev1beta1.OperationRotateCAComplete, corev1beta1.OperationRotateServiceAccountKeyComplete,
	},
}

// shootNeedsNewGeneration tells whether gardenlet has to act on a write. An operation that the new generation alone
// carries out is taken out of the annotation.
func shootNeedsNewGeneration(shoot, old *corev1beta1.Shoot) bool {
	requested := false
	if last := old.Status.LastOperation; last != nil {
		dropNeedlessOperations(shoot)
		requested = takeOperation(shoot, last.State)
		// A shoot that has failed waits for "retry".
		requested = requested || last.State != corev1beta1.LastOperationStateFailed && requestsLastingOperation(shoot, old)
	}
	return requested ||
		specNeedsNewGeneration(shoot, old) ||
		(shoot.DeletionTimestamp != nil && old.DeletionTimestamp == nil) ||
		(corev1beta1.NeedsForceDeletion(shoot) && !corev1beta1.NeedsForceDeletion(old))
}

// dropNeedlessOperations drops what a wider operation carries out too, and the rotation of an SSH key that nobody uses.
func dropNeedlessOperations(shoot *corev1beta1.Shoot) {
	wanted := corev1beta1.SplitOperations(shoot.Annotations[corev1beta1.GardenerOperation])
	needless := sets.New[string]()
	for _, operation := range wanted {
		needless.Insert(included[operation]...)
	}
	if corev1beta1.IsWorkerless(shoot) || !corev1beta1.SSHAccessEnabled(&shoot.Spec) {
		needless.Insert(corev1beta1.ShootOperationRotateSSHKeypair)
	}
	if slices.ContainsFunc(wanted, needless.Has) {
		setOperations(shoot, slices.DeleteFunc(wanted, needless.Has))
	}
}

func setOperations(object metav1.Object, operations []string) {
	annotations := object.GetAnnotations()
	if len(operations) > 0 {
		annotations[corev1beta1.GardenerOperation] = strings.Join(operations, ";")
	} else {
		delete(annotations, corev1beta1.GardenerOperation)
	}
}

// takeOperation removes "reconcile", or "retry" from a shoot that has failed, and tells whether it was there.
func takeOperation(shoot *corev1beta1.Shoot, state corev1beta1.LastOperationState) bool {
	wanted := corev1beta1.SplitOperations(shoot.Annotations[corev1beta1.GardenerOperation])
	carriedOut := corev1beta1.GardenerOperationReconcile
	if state == corev1beta1.LastOperationStateFailed {
		carriedOut = corev1beta1.GardenerOperationRetry
	}
	at := slices.Index(wanted, carriedOut)
	if at < 0 || (carriedOut == corev1beta1.GardenerOperationRetry && len(wanted) > 1) {
		return false
	}
	setOperations(shoot, slices.Delete(wanted, at, at+1))
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

// requestsLastingOperation tells whether an operation was added that gardenlet removes when it is done.
func requestsLastingOperation(shoot, old *corev1beta1.Shoot) bool {
	before := corev1beta1.SplitOperations(old.Annotations[corev1beta1.GardenerOperation])
	return slices.ContainsFunc(corev1beta1.SplitOperations(shoot.Annotations[corev1beta1.GardenerOperation]), func(operation string) bool {
		return !slices.Contains(before, operation) && slices.ContainsFunc(operationPrefixes, func(prefix string) bool {
			return strings.HasPrefix(operation, prefix)
		})
	})
}

// prepareShootStatus: the end of a migration hands the shoot over to another gardenlet, which acts on new generations; and so does the
// second half of a rotation that follows by itself.
func prepareShootStatus(shoot, old *corev1beta1.Shoot) {
	if (endsMigration(shoot.Status.LastOperation) && !endsMigration(old.Status.LastOperation)) || (completesByItself(shoot) && !completesByItself(old)) {
		shoot.Generation = old.Generation + 1
	}
}

func endsMigration(operation *corev1beta1.LastOperation) bool {
	return operation != nil && operation.Type == corev1beta1.LastOperationTypeMigrate &&
		(operation.State == corev1beta1.LastOperationStateSucceeded || operation.State == corev1beta1.LastOperationStateAborted)
}

// completesByItself tells whether a rotation of the key for encryption at rest is to be completed now, without being asked to.
func completesByItself(shoot *corev1beta1.Shoot) bool {
	credentials := shoot.Status.Credentials
	if credentials == nil || credentials.Rotation == nil || credentials.Rotation.ETCDEncryptionKey == nil {
		return false
	}
	rotation := credentials.Rotation.ETCDEncryptionKey
	return rotation.Phase == corev1beta1.RotationPrepared && ptr.Deref(rotation.AutoCompleteAfterPrepared, false)
}
