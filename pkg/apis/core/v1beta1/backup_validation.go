package v1beta1

import (
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateBackupBucket checks a BackupBucket on its own.
func ValidateBackupBucket(bucket *BackupBucket) field.ErrorList {
	errs := validateMeta(&bucket.ObjectMeta, false, apivalidation.NameIsDNSSubdomain)
	spec, path := &bucket.Spec, field.NewPath("spec")
	errs = append(errs, validateRequired(spec.Provider.Type, path.Child("provider", "type"), "name the type of the object store's provider")...)
	errs = append(errs, validateRequired(spec.Provider.Region, path.Child("provider", "region"), "name the region of the bucket")...)
	errs = append(errs, validateSeedOrShoot(spec.SeedName != nil, spec.ShootRef != nil, path, "seedName")...)
	errs = append(errs, validateShootRef(spec.ShootRef, path.Child("shootRef"))...)
	if spec.CredentialsRef == nil {
		return append(errs, field.Required(path.Child("credentialsRef"), "refer to the credentials for the object store"))
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

// ValidateBackupEntry checks a BackupEntry on its own.
func ValidateBackupEntry(entry *BackupEntry) field.ErrorList {
	errs := validateMeta(&entry.ObjectMeta, true, apivalidation.NameIsDNSSubdomain)
	path := field.NewPath("spec")
	errs = append(errs, validateRequired(entry.Spec.BucketName, path.Child("bucketName"), "name the BackupBucket")...)
	errs = append(errs, validateShootRef(entry.Spec.ShootRef, path.Child("shootRef"))...)
	return append(errs, validateSeedOrShoot(entry.Spec.SeedName != nil, entry.Spec.ShootRef != nil, path, "seedName")...)
}

// ValidateBackupEntryUpdate checks a change of a BackupEntry. Bucket and seed change when a control plane moves.
func ValidateBackupEntryUpdate(entry, old *BackupEntry) field.ErrorList {
	errs := validateMetaUpdate(&entry.ObjectMeta, &old.ObjectMeta)
	path := field.NewPath("spec")
	errs = append(errs, validateImmutableOnceSet(entry.Spec.ShootRef, old.Spec.ShootRef, path.Child("shootRef"))...)
	if entry.Spec.BucketName != old.Spec.BucketName && deref(entry.Spec.SeedName) == deref(old.Spec.SeedName) {
		errs = append(errs, field.Invalid(path.Child("bucketName"), entry.Spec.BucketName, fmt.Sprintf("can only change together with seedName; it was %q", old.Spec.BucketName)))
	}
	return append(errs, ValidateBackupEntry(entry)...)
}
