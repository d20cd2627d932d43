package seed

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/conditions"
)

// ExtensionsReady sums up the extensions of a seed.
func ExtensionsReady(installations []gardencorev1beta1.ControllerInstallation) gardencorev1beta1.Condition {
	var problems []string
	for _, installation := range installations {
		if problem := extensionProblem(&installation); problem != "" {
			problems = append(problems, installation.Spec.RegistrationRef.Name+": "+problem)
		}
	}
	if len(problems) == 0 {
		return conditions.New(gardencorev1beta1.SeedExtensionsReady, gardencorev1beta1.ConditionTrue,
			"AllExtensionsReady", "All extensions are installed and healthy.")
	}
	slices.Sort(problems)
	return conditions.New(gardencorev1beta1.SeedExtensionsReady, gardencorev1beta1.ConditionFalse,
		"NotAllExtensionsReady", strings.Join(problems, "; "))
}

// extensionProblem returns the first thing that is wrong with an installation; nothing when all is well.
func extensionProblem(installation *gardencorev1beta1.ControllerInstallation) string {
	for _, wanted := range []struct {
		condition gardencorev1beta1.ConditionType
		status    gardencorev1beta1.ConditionStatus
	}{
		{gardencorev1beta1.ControllerInstallationValid, gardencorev1beta1.ConditionTrue},
		{gardencorev1beta1.ControllerInstallationInstalled, gardencorev1beta1.ConditionTrue},
		{gardencorev1beta1.ControllerInstallationHealthy, gardencorev1beta1.ConditionTrue},
		{gardencorev1beta1.ControllerInstallationProgressing, gardencorev1beta1.ConditionFalse},
	} {
		found := conditions.Get(installation.Status.Conditions, wanted.condition)
		switch {
		case found == nil:
			return fmt.Sprintf("%s is not reported yet", wanted.condition)
		case found.Status != wanted.status:
			return fmt.Sprintf("%s is %s: %s", wanted.condition, found.Status, found.Message)
		}
	}
	return ""
}

// BackupBucketsReady sums up the buckets of a seed.
func BackupBucketsReady(buckets []gardencorev1beta1.BackupBucket) gardencorev1beta1.Condition {
	const t = gardencorev1beta1.SeedBackupBucketsReady
	if len(buckets) == 0 {
		return conditions.New(t, gardencorev1beta1.ConditionUnknown, "BackupBucketsGone", "Backup Buckets are gone.")
	}
	buckets = slices.SortedFunc(slices.Values(buckets),
		func(a, b gardencorev1beta1.BackupBucket) int { return cmp.Compare(a.Name, b.Name) })
	var errors, pending []string
	for _, bucket := range buckets {
		last := bucket.Status.LastOperation
		switch {
		case bucket.Status.LastError != nil:
			errors = append(errors, fmt.Sprintf("%s: %s", bucket.Name, bucket.Status.LastError.Description))
		case last == nil || last.State != gardencorev1beta1.LastOperationStateSucceeded:
			pending = append(pending, bucket.Name)
		}
	}
	switch {
	case len(errors) > 0:
		return conditions.New(t, gardencorev1beta1.ConditionFalse, "BackupBucketsError",
			"The following BackupBuckets have issues: "+strings.Join(errors, "; "))
	case len(pending) > 0:
		return conditions.New(t, gardencorev1beta1.ConditionProgressing, "BackupBucketsPending",
			"The following BackupBuckets are not ready yet: "+strings.Join(pending, ", "))
	}
	return conditions.New(t, gardencorev1beta1.ConditionTrue, "BackupBucketsAvailable", "Backup Buckets are available.")
}
