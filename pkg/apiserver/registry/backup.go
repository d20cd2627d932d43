package registry

import (
	"strconv"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func backupBuckets() Served {
	type bucket = *gardencorev1beta1.BackupBucket
	return &Kind[bucket]{
		Version: gardencorev1beta1.SchemeGroupVersion, Plural: "backupbuckets", Singular: "backupbucket",
		ShortNames: []string{"bbc"},
		New:        func() bucket { return &gardencorev1beta1.BackupBucket{} },
		NewList:    func() runtime.Object { return &gardencorev1beta1.BackupBucketList{} },
		Spec:       func(b bucket) any { return b.Spec },
		CopySpec:   func(to, from bucket) { to.Spec = from.Spec },
		CopyStatus: func(to, from bucket) { to.Status = from.Status },
		Columns: append([]Column[bucket]{
			{
				Name: "Provider", Description: "The provider of the bucket.",
				Cell: func(b bucket) any { return b.Spec.Provider.Type },
			},
			{
				Name: "Seed", Description: "The seed that takes care of the bucket.",
				Cell: func(b bucket) any { return orElse(b.Spec.SeedName, none) },
			},
		}, operationColumns(func(b bucket) *gardencorev1beta1.LastOperation { return b.Status.LastOperation })...),
		Fields: map[string]func(bucket) string{
			"spec.seedName":           func(b bucket) string { return ptr.Deref(b.Spec.SeedName, "") },
			"spec.shootRef.name":      func(b bucket) string { return refName(b.Spec.ShootRef) },
			"spec.shootRef.namespace": func(b bucket) string { return refNamespace(b.Spec.ShootRef) },
		},
		Index: "spec.seedName",
		NeedsNewGeneration: func(b, old bucket) bool {
			return takeReconcile(b) || !apiequality.Semantic.DeepEqual(b.Spec, old.Spec)
		},
		Validate:             gardencorev1beta1.ValidateNewBackupBucket,
		ValidateUpdate:       gardencorev1beta1.ValidateBackupBucketUpdate,
		ValidateStatusUpdate: gardencorev1beta1.ValidateBackupBucketStatusUpdate,
	}
}

func backupEntries() Served {
	type entry = *gardencorev1beta1.BackupEntry
	return &Kind[entry]{
		Version: gardencorev1beta1.SchemeGroupVersion, Plural: "backupentries", Singular: "backupentry",
		Namespaced: true,
		ShortNames: []string{"bec"},
		New:        func() entry { return &gardencorev1beta1.BackupEntry{} },
		NewList:    func() runtime.Object { return &gardencorev1beta1.BackupEntryList{} },
		Spec:       func(e entry) any { return e.Spec },
		CopySpec:   func(to, from entry) { to.Spec = from.Spec },
		CopyStatus: func(to, from entry) { to.Status = from.Status },
		Columns: append([]Column[entry]{
			{
				Name: "Bucket", Description: "The bucket that holds the backups.",
				Cell: func(e entry) any { return e.Spec.BucketName },
			},
			{
				Name: "Seed", Description: "The seed that takes care of the entry.",
				Cell: func(e entry) any { return orElse(e.Spec.SeedName, none) },
			},
		}, operationColumns(func(e entry) *gardencorev1beta1.LastOperation { return e.Status.LastOperation })...),
		Fields: map[string]func(entry) string{
			"spec.seedName":           func(e entry) string { return ptr.Deref(e.Spec.SeedName, "") },
			"spec.bucketName":         func(e entry) string { return e.Spec.BucketName },
			"spec.shootRef.name":      func(e entry) string { return refName(e.Spec.ShootRef) },
			"spec.shootRef.namespace": func(e entry) string { return refNamespace(e.Spec.ShootRef) },
		},
		Index: "spec.seedName",
		NeedsNewGeneration: func(e, old entry) bool {
			return takeReconcile(e) || !apiequality.Semantic.DeepEqual(e.Spec, old.Spec) ||
				isForced(e) && !isForced(old)
		},
		Validate:             gardencorev1beta1.ValidateNewBackupEntry,
		ValidateUpdate:       gardencorev1beta1.ValidateBackupEntryUpdate,
		ValidateStatusUpdate: gardencorev1beta1.ValidateBackupEntryStatusUpdate,
	}
}

// isForced tells whether a BackupEntry is to go without its grace period.
func isForced(entry *gardencorev1beta1.BackupEntry) bool {
	forced, err := strconv.ParseBool(entry.Annotations[gardencorev1beta1.BackupEntryForceDeletion])
	return err == nil && forced
}

// operationColumns print an operation's state and progress in two columns.
func operationColumns[T Object](operation func(T) *gardencorev1beta1.LastOperation) []Column[T] {
	return []Column[T]{
		{Name: "Operation", Description: "The state of the last operation.", Cell: func(obj T) any {
			if last := operation(obj); last != nil {
				return string(last.State)
			}
			return pending
		}},
		{Name: "Progress", Type: "integer", Description: "The progress of the last operation in percent.",
			Cell: func(obj T) any {
				if last := operation(obj); last != nil {
					return int64(last.Progress)
				}
				return int64(0)
			}},
	}
}
