package v1beta1

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Operations with two halves, and their variant that leaves machines alone.
const (
	suffixStart               = "-start"
	suffixStartWithoutRollout = "-start-without-workers-rollout"
	suffixComplete            = "-complete"
	rotateCredentials         = "rotate-credentials"
	rotateCA                  = "rotate-ca"
	rotateServiceAccountKey   = "rotate-serviceaccount-key"

	// maxOperationsLength is the most characters of an annotation with operations.
	maxOperationsLength = 4096
)

var (
	// plainOperations are the operations of a Shoot that take no argument, in the order in which messages list them.
	plainOperations = []string{
		GardenerOperationReconcile, GardenerOperationRetry, GardenerOperationMaintain, ShootOperationForceInPlaceUpdate,
		OperationRotateCredentialsStart, OperationRotateCredentialsStartWithoutWorkersRollout,
		OperationRotateCredentialsComplete,
		OperationRotateCAStart, OperationRotateCAStartWithoutWorkersRollout, OperationRotateCAComplete,
		OperationRotateServiceAccountKeyStart, OperationRotateServiceAccountKeyStartWithoutWorkersRollout,
		OperationRotateServiceAccountKeyComplete,
		OperationRotateETCDEncryptionKey, OperationRotateETCDEncryptionKeyStart,
		OperationRotateETCDEncryptionKeyComplete,
		OperationRotateObservabilityCredentials, ShootOperationRotateSSHKeypair,
	}
	// onlyAtOnce are operations that cannot wait for the next maintenance.
	onlyAtOnce = sets.New(GardenerOperationRetry, GardenerOperationMaintain, ShootOperationForceInPlaceUpdate)
	// possibleAsleep are rotations that need neither the API server nor machines.
	possibleAsleep = sets.New(ShootOperationRotateSSHKeypair)
)

// SplitOperations splits the value of an annotation with operations: trimmed, each once, in order.
func SplitOperations(value string) []string {
	var operations []string
	seen := sets.New[string]()
	for operation := range strings.SplitSeq(value, ";") {
		operation = strings.TrimSpace(operation)
		if operation != "" && !seen.Has(operation) {
			operations = append(operations, operation)
			seen.Insert(operation)
		}
	}
	return operations
}

// validateOperations checks operations that are newly asked for. The old Shoot is nil on creation.
func validateOperations(shoot, old *Shoot) field.ErrorList {
	var errs field.ErrorList
	for _, annotation := range []string{GardenerOperation, GardenerMaintenanceOperation} {
		value, before := shoot.Annotations[annotation], ""
		if old != nil {
			before = old.Annotations[annotation]
		}
		if value == before {
			continue
		}
		v := operationsValidator{
			shoot: shoot, path: field.NewPath("metadata", "annotations").Key(annotation),
			atOnce: annotation == GardenerOperation,
		}
		errs = append(errs, v.validate(value, before)...)
	}
	return errs
}

// OperationProblem tells why an operation, as the annotation GardenerOperation names it, cannot be asked of a Shoot
// now; nothing when it can.
func OperationProblem(shoot *Shoot, operation string) string {
	return operationsValidator{shoot: shoot, atOnce: true}.problem(operation)
}

// operationsValidator checks the operations of one annotation.
// +k8s:openapi-gen=false
type operationsValidator struct {
	shoot *Shoot
	path  *field.Path
	// atOnce: the operations begin now, not at the next maintenance.
	atOnce bool
}

func (v operationsValidator) validate(value, before string) field.ErrorList {
	if len(value) > maxOperationsLength {
		return field.ErrorList{field.TooLong(v.path, value, maxOperationsLength)}
	}
	operations, present := SplitOperations(value), SplitOperations(before)
	errs := v.validateTogether(operations)
	for _, operation := range operations {
		if slices.Contains(present, operation) {
			continue
		}
		if problem := v.problem(operation); problem != "" {
			errs = append(errs, field.Invalid(v.path, operation, problem))
		}
	}
	return errs
}

// validateTogether refuses both halves, or both variants, of one rotation, and two times to restore.
func (v operationsValidator) validateTogether(operations []string) field.ErrorList {
	var errs field.ErrorList
	asked := sets.New(operations...)
	for _, rotation := range []string{
		rotateCredentials, rotateCA, rotateServiceAccountKey, OperationRotateETCDEncryptionKey,
	} {
		var together []string
		for _, suffix := range []string{suffixStart, suffixStartWithoutRollout, suffixComplete} {
			if asked.Has(rotation + suffix) {
				together = append(together, rotation+suffix)
			}
		}
		if len(together) > 1 {
			errs = append(errs, field.Forbidden(v.path,
				strings.Join(together, " and ")+" cannot be asked for together"))
		}
	}
	if restores := slices.DeleteFunc(slices.Clone(operations),
		func(operation string) bool { return !IsRestoreOperation(operation) }); len(restores) > 1 {
		errs = append(errs, field.Forbidden(v.path, strings.Join(restores, " and ")+" cannot be asked for together"))
	}
	return errs
}

// problem tells why an operation cannot be asked for; nothing when it can.
func (v operationsValidator) problem(operation string) string {
	if why := operationNotOffered(operation); why != "" {
		return "not offered: " + why
	}
	if pools, ok := rolledOutPools(operation); ok {
		return v.poolsProblem(pools)
	}
	if to, ok := restoredTime(operation); ok {
		return v.restoreProblem(to)
	}
	if !slices.Contains(plainOperations, operation) {
		return "must be one of " + strings.Join(plainOperations, ", ") + ", " + OperationRolloutWorkers + "=<pools>, " +
			OperationRotateRolloutWorkers + "=<pools>, " + ShootOperationRestoreETCD + "=<time>"
	}
	if !v.atOnce && onlyAtOnce.Has(operation) {
		return "cannot wait for maintenance; use annotation " + GardenerOperation
	}
	if minor, ok := minorOf(v.shoot.Spec.Kubernetes.Version); ok && minor >= 34 &&
		(operation == OperationRotateETCDEncryptionKeyStart || operation == OperationRotateETCDEncryptionKeyComplete) {
		return "was removed with Kubernetes 1.34; use " + OperationRotateETCDEncryptionKey
	}
	if operation == ShootOperationForceInPlaceUpdate && !slices.ContainsFunc(v.shoot.Spec.Provider.Workers,
		func(worker Worker) bool { return IsUpdatedInPlace(&worker) }) {
		return "is for shoots with worker pools that are updated in place; this one has none"
	}
	if operation == OperationRotateObservabilityCredentials {
		return "is not offered: control planes have no observability components with credentials of their own"
	}
	if v.atOnce && strings.HasPrefix(operation, "rotate-") {
		return v.rotationProblem(operation)
	}
	return ""
}

// operationNotOffered tells why an operation is refused that nobody would carry out; nothing for those that are.
func operationNotOffered(operation string) string {
	if strings.HasPrefix(operation, OperationRolloutWorkers+"=") {
		return "machines are replaced when their pool changes; change the pool, for example the version of its " +
			"image, or delete its nodes one by one"
	}
	return ""
}

// rolledOutPools returns the pools of an operation that replaces machines.
func rolledOutPools(operation string) ([]string, bool) {
	name, pools, ok := strings.Cut(operation, "=")
	if !ok || name != OperationRolloutWorkers && name != OperationRotateRolloutWorkers {
		return nil, false
	}
	return strings.Split(pools, ","), true
}

func (v operationsValidator) poolsProblem(pools []string) string {
	for _, pool := range pools {
		if pool != "*" && workerNamed(v.shoot, pool) == nil {
			return fmt.Sprintf("names pool %q, which the shoot does not have", pool)
		}
	}
	return ""
}

func (v operationsValidator) rotationProblem(operation string) string {
	if sleeps(v.shoot) && !possibleAsleep.Has(operation) {
		return "is not possible while the cluster sleeps; wake it up first"
	}
	rotation, isComplete := strings.CutSuffix(operation, suffixComplete)
	if !isComplete {
		if rotation = strings.TrimSuffix(operation, suffixStart); rotation == operation {
			rotation = strings.TrimSuffix(operation, suffixStartWithoutRollout)
		}
	}
	phases, inHalves := rotationPhases(v.shoot)[rotation]
	switch {
	case !inHalves:
		return ""
	case isComplete:
		return completeProblem(phases)
	}
	return v.startProblem(phases)
}

// namedPhase is how far one rotation is.
// +k8s:openapi-gen=false
type namedPhase struct {
	what  string
	phase CredentialsRotationPhase
}

// rotationPhases returns, per operation without its suffix, how far the rotations that it starts or completes are.
func rotationPhases(shoot *Shoot) map[string][]namedPhase {
	rotation := rotationOf(shoot)
	ca := namedPhase{"the certificate authorities", deref(rotation.CertificateAuthorities).Phase}
	key := namedPhase{"the key for service account tokens", deref(rotation.ServiceAccountKey).Phase}
	encryption := namedPhase{"the key for encryption at rest", deref(rotation.ETCDEncryptionKey).Phase}
	return map[string][]namedPhase{
		rotateCredentials: {ca, key}, rotateCA: {ca}, rotateServiceAccountKey: {key},
		OperationRotateETCDEncryptionKey: {encryption},
	}
}

func completeProblem(phases []namedPhase) string {
	for _, one := range phases {
		if one.phase != RotationPrepared {
			return fmt.Sprintf("is possible when the rotation of %s is Prepared; it is %s", one.what, orNone(one.phase))
		}
	}
	return ""
}

func (v operationsValidator) startProblem(phases []namedPhase) string {
	if !hasBeenCreated(v.shoot.Status.LastOperation) {
		return "is possible once the cluster has been created; wait until status.lastOperation is Create Succeeded"
	}
	for _, one := range phases {
		if one.phase != "" && one.phase != RotationCompleted {
			return fmt.Sprintf("is possible when no rotation is under way; that of %s is %s", one.what, one.phase)
		}
	}
	return ""
}

func orNone(phase CredentialsRotationPhase) string {
	if phase == "" {
		return "not under way"
	}
	return string(phase)
}

func hasBeenCreated(operation *LastOperation) bool {
	if operation == nil {
		return false
	}
	switch operation.Type {
	case LastOperationTypeCreate, LastOperationTypeRestore:
		return operation.State == LastOperationStateSucceeded
	}
	return operation.Type == LastOperationTypeReconcile
}

// validateForceDeletion allows to give up the orderly deletion of a shoot that failed for a reason that waiting does
// not remove.
func validateForceDeletion(shoot, old *Shoot) field.ErrorList {
	path := field.NewPath("metadata", "annotations").Key(AnnotationConfirmationForceDeletion)
	before, after := NeedsForceDeletion(old), NeedsForceDeletion(shoot)
	switch {
	case before && !after:
		return field.ErrorList{field.Forbidden(path, "cannot be taken back")}
	case before || !after:
		return nil
	case old.DeletionTimestamp == nil && shoot.DeletionTimestamp == nil:
		return field.ErrorList{field.Forbidden(path, "is possible after the shoot was deleted; delete it first")}
	case !slices.ContainsFunc(shoot.Status.LastErrors,
		func(e LastError) bool { return slices.ContainsFunc(e.Codes, ErrorCode.AllowsForceDeletion) }):
		return field.ErrorList{
			field.Forbidden(path, "is possible when the deletion failed with one of the codes "+
				strings.Join(namesAsStrings(forceDeletionCodes()), ", ")+" in status.lastErrors"),
		}
	}
	return nil
}

// NeedsForceDeletion tells whether a Shoot is to be deleted without its infrastructure.
func NeedsForceDeletion(shoot *Shoot) bool {
	if shoot == nil {
		return false
	}
	confirmed, err := strconv.ParseBool(shoot.Annotations[AnnotationConfirmationForceDeletion])
	return err == nil && confirmed
}

func namesAsStrings[T ~string](values []T) []string {
	return namesOf(values, func(value T) string { return string(value) })
}
