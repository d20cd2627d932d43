package v1beta1

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateNewBackupBucket checks a BackupBucket that is to be created.
func ValidateNewBackupBucket(bucket *BackupBucket) field.ErrorList {
	return append(ValidateBackupBucket(bucket), selfHostedNotOffered(bucket.Spec.ShootRef)...)
}

// ValidateBackupBucket checks a BackupBucket on its own.
func ValidateBackupBucket(bucket *BackupBucket) field.ErrorList {
	errs := validateMeta(&bucket.ObjectMeta, false, apivalidation.NameIsDNSSubdomain)
	spec, path := &bucket.Spec, field.NewPath("spec")
	errs = append(errs, validateRequired(spec.Provider.Type, path.Child("provider", "type"),
		"name the type of the object store's provider")...)
	errs = append(errs, validateRequired(spec.Provider.Region, path.Child("provider", "region"),
		"name the region of the bucket")...)
	errs = append(errs, validateSeedOrShoot(spec.SeedName != nil, spec.ShootRef != nil, path, "seedName")...)
	errs = append(errs, validateShootRef(spec.ShootRef, path.Child("shootRef"))...)
	if spec.CredentialsRef == nil {
		return append(errs, field.Required(path.Child("credentialsRef"),
			"refer to the credentials for the object store"))
	}
	return append(errs, validateCredentialsRef(spec.CredentialsRef, credentialKinds, path.Child("credentialsRef"))...)
}

// ValidateBackupBucketUpdate checks a change of a BackupBucket.
func ValidateBackupBucketUpdate(bucket, old *BackupBucket) field.ErrorList {
	errs := validateMetaUpdate(&bucket.ObjectMeta, &old.ObjectMeta)
	path := field.NewPath("spec")
	errs = append(errs, validateImmutable(bucket.Spec.Provider, old.Spec.Provider, path.Child("provider"))...)
	errs = append(errs, validateImmutableOnceSet(bucket.Spec.SeedName, old.Spec.SeedName, path.Child("seedName"))...)
	errs = append(errs, validateImmutableOnceSet(bucket.Spec.ShootRef, old.Spec.ShootRef, path.Child("shootRef"))...)
	return append(errs, ValidateBackupBucket(bucket)...)
}

// ValidateNewBackupEntry checks a BackupEntry that is to be created.
func ValidateNewBackupEntry(entry *BackupEntry) field.ErrorList {
	path := field.NewPath("metadata", "name")
	errs := append(ValidateBackupEntry(entry), selfHostedNotOffered(entry.Spec.ShootRef)...)
	if _, _, ok := ShootOfBackupEntry(entry.Name); !ok {
		errs = append(errs, field.Invalid(path, entry.Name, "must be <technical ID of the shoot>--<UID of the shoot>"))
	}
	return append(errs, migrationNotOffered(entry, nil)...)
}

// BackupEntryName is the name of the BackupEntry of a shoot.
func BackupEntryName(technicalID, uid string) string { return technicalID + "--" + uid }

// ShootOfBackupEntry takes the name of a BackupEntry apart: <technical ID of the shoot>--<UID of the shoot>.
func ShootOfBackupEntry(name string) (technicalID, uid string, ok bool) {
	i := strings.LastIndex(name, "--")
	if i <= 0 || i+2 == len(name) {
		return "", "", false
	}
	return name[:i], name[i+2:], true
}

// migrationNotOffered: control planes leave a seed that is there no more, or none, and their backups stay where they
// are.
func migrationNotOffered(entry, old *BackupEntry) field.ErrorList {
	const why, instead = "backups stay in their bucket", "leave it as it is"
	operation := entry.Annotations[GardenerOperation]
	moves := operation == GardenerOperationMigrate || operation == GardenerOperationRestore
	if old != nil && old.Annotations[GardenerOperation] == operation {
		moves = false
	}
	return refuseIf(moves, field.NewPath("metadata", "annotations").Key(GardenerOperation), why, instead)
}

// ValidateBackupEntry checks a BackupEntry on its own.
func ValidateBackupEntry(entry *BackupEntry) field.ErrorList {
	errs := validateMeta(&entry.ObjectMeta, true, apivalidation.NameIsDNSSubdomain)
	path := field.NewPath("spec")
	errs = append(errs, validateRequired(entry.Spec.BucketName, path.Child("bucketName"), "name the BackupBucket")...)
	errs = append(errs, validateShootRef(entry.Spec.ShootRef, path.Child("shootRef"))...)
	return append(errs, validateSeedOrShoot(entry.Spec.SeedName != nil, entry.Spec.ShootRef != nil, path,
		"seedName")...)
}

// ValidateBackupEntryUpdate checks a change of a BackupEntry. Its seed changes with that of its shoot, its bucket does
// not.
func ValidateBackupEntryUpdate(entry, old *BackupEntry) field.ErrorList {
	errs := validateMetaUpdate(&entry.ObjectMeta, &old.ObjectMeta)
	path := field.NewPath("spec")
	errs = append(errs, validateImmutableOnceSet(entry.Spec.ShootRef, old.Spec.ShootRef, path.Child("shootRef"))...)
	errs = append(errs, validateImmutable(entry.Spec.BucketName, old.Spec.BucketName, path.Child("bucketName"))...)
	errs = append(errs, migrationNotOffered(entry, old)...)
	return append(errs, ValidateBackupEntry(entry)...)
}
