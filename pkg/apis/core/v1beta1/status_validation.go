package v1beta1

import (
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What controllers write into the status of objects.

var (
	conditionStatuses = []ConditionStatus{ConditionTrue, ConditionFalse, ConditionUnknown, ConditionProgressing}
	operationStates   = []LastOperationState{
		LastOperationStateProcessing, LastOperationStateSucceeded, LastOperationStateError, LastOperationStateFailed,
		LastOperationStatePending, LastOperationStateAborted,
	}
	operationTypes = []LastOperationType{
		LastOperationTypeCreate, LastOperationTypeReconcile, LastOperationTypeDelete, LastOperationTypeMigrate,
		LastOperationTypeRestore, LastOperationTypeLiveMigrate,
	}
	projectPhases = []ProjectPhase{ProjectPending, ProjectReady, ProjectFailed, ProjectTerminating}
)

// ValidateShootStatusUpdate checks a change of the status of a Shoot.
func ValidateShootStatusUpdate(shoot, old *Shoot) field.ErrorList {
	path, status := field.NewPath("status"), &shoot.Status
	errs := validateImmutableOnceSet(status.ClusterIdentity, old.Status.ClusterIdentity, path.Child("clusterIdentity"))
	if old.Status.UID != "" {
		errs = append(errs, validateImmutable(string(status.UID), string(old.Status.UID), path.Child("uid"))...)
	}
	if old.Status.TechnicalID != "" {
		errs = append(errs, validateImmutable(status.TechnicalID, old.Status.TechnicalID, path.Child("technicalID"))...)
	}
	errs = append(errs, validateConditions(status.Conditions, path.Child("conditions"))...)
	errs = append(errs, validateConditions(status.Constraints, path.Child("constraints"))...)
	errs = append(errs, validateLastOperation(status.LastOperation, path.Child("lastOperation"))...)
	return append(errs, validateAdvertisedAddresses(status.AdvertisedAddresses, path.Child("advertisedAddresses"))...)
}

// ValidateSeedStatusUpdate checks a change of the status of a Seed.
func ValidateSeedStatusUpdate(seed, old *Seed) field.ErrorList {
	path := field.NewPath("status")
	errs := validateImmutableOnceSet(seed.Status.ClusterIdentity, old.Status.ClusterIdentity,
		path.Child("clusterIdentity"))
	errs = append(errs, validateConditions(seed.Status.Conditions, path.Child("conditions"))...)
	errs = append(errs, validateResourceList(seed.Status.Capacity, nil, path.Child("capacity"))...)
	errs = append(errs, validateResourceList(seed.Status.Allocatable, nil, path.Child("allocatable"))...)
	return append(errs, validateLastOperation(seed.Status.LastOperation, path.Child("lastOperation"))...)
}

// ValidateProjectStatusUpdate checks a change of the status of a Project.
func ValidateProjectStatusUpdate(project, old *Project) field.ErrorList {
	path := field.NewPath("status")
	errs := validateConditions(project.Status.Conditions, path.Child("conditions"))
	if old.Status.Phase == "" && project.Status.Phase == "" {
		return errs
	}
	return append(errs, validateSupported(project.Status.Phase, projectPhases, path.Child("phase"))...)
}

// ValidateBackupBucketStatusUpdate checks a change of the status of a BackupBucket.
func ValidateBackupBucketStatusUpdate(bucket, _ *BackupBucket) field.ErrorList {
	return validateLastOperation(bucket.Status.LastOperation, field.NewPath("status", "lastOperation"))
}

// ValidateBackupEntryStatusUpdate checks a change of the status of a BackupEntry.
func ValidateBackupEntryStatusUpdate(entry, _ *BackupEntry) field.ErrorList {
	return validateLastOperation(entry.Status.LastOperation, field.NewPath("status", "lastOperation"))
}

// ValidateControllerInstallationStatusUpdate checks a change of the status of a ControllerInstallation.
func ValidateControllerInstallationStatusUpdate(installation, _ *ControllerInstallation) field.ErrorList {
	return validateConditions(installation.Status.Conditions, field.NewPath("status", "conditions"))
}

func validateConditions(conditions []Condition, path *field.Path) field.ErrorList {
	name := func(i int) *field.Path { return path.Index(i).Child("type") }
	errs := validateUnique(conditions, func(c Condition) ConditionType { return c.Type }, name)
	for i, condition := range conditions {
		errs = append(errs, validateRequired(string(condition.Type), name(i), "name what the condition is about")...)
		errs = append(errs, validateSupported(condition.Status, conditionStatuses, path.Index(i).Child("status"))...)
	}
	return errs
}

func validateLastOperation(operation *LastOperation, path *field.Path) field.ErrorList {
	if operation == nil {
		return nil
	}
	errs := validateSupported(operation.Type, operationTypes, path.Child("type"))
	errs = append(errs, validateSupported(operation.State, operationStates, path.Child("state"))...)
	return append(errs, validateBetween(operation.Progress, 0, 100, path.Child("progress"))...)
}

func validateAdvertisedAddresses(addresses []ShootAdvertisedAddress, path *field.Path) field.ErrorList {
	name := func(i int) *field.Path { return path.Index(i).Child("name") }
	errs := validateUnique(addresses, func(a ShootAdvertisedAddress) string { return a.Name }, name)
	for i, address := range addresses {
		errs = append(errs, validateRequired(address.Name, name(i), "name the address, such as external")...)
		if parsed, err := url.Parse(address.URL); err != nil || parsed.Scheme != "https" || parsed.Host == "" ||
			parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
			errs = append(errs, field.Invalid(path.Index(i).Child("url"), address.URL,
				"must be an https URL without user, query and fragment"))
		}
	}
	return errs
}
