package v1alpha1

import (
	"strconv"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

var (
	updateStrategyTypes   = []UpdateStrategyType{RollingUpdateStrategyType}
	pendingReplicaReasons = []PendingReplicaReason{
		ShootReconcilingReason, ShootDeletingReason, ShootReconcileFailedReason, ShootDeleteFailedReason,
		ManagedSeedPreparingReason, ManagedSeedDeletingReason, SeedNotReadyReason, ShootNotHealthyReason,
	}
)

// ValidateManagedSeedSet checks a ManagedSeedSet on its own.
func ValidateManagedSeedSet(set *ManagedSeedSet) field.ErrorList {
	errs := validateMeta(&set.ObjectMeta)
	errs = append(errs, validateOperation(&set.ObjectMeta, gardencorev1beta1.GardenerOperationReconcile)...)
	spec, path := &set.Spec, field.NewPath("spec")
	errs = append(errs, validateNotNegative(spec.Replicas, path.Child("replicas"))...)
	errs = append(errs, validateNotNegative(spec.RevisionHistoryLimit, path.Child("revisionHistoryLimit"))...)
	errs = append(errs, validateUpdateStrategy(spec.UpdateStrategy, path.Child("updateStrategy"))...)
	errs = append(errs, validateManagedSeedTemplate(&spec.Template, path.Child("template"))...)
	errs = append(errs, gardencorev1beta1.ValidateShootTemplate(&spec.ShootTemplate, set.Namespace,
		path.Child("shootTemplate"))...)
	if len(spec.ShootTemplate.Spec.Provider.Workers) == 0 {
		errs = append(errs, field.Required(path.Child("shootTemplate", "spec", "provider", "workers"),
			"a seed needs workers"))
	}
	return append(errs, validateSetSelector(spec, path)...)
}

// ValidateManagedSeedSetUpdate checks a change of a ManagedSeedSet.
func ValidateManagedSeedSetUpdate(set, old *ManagedSeedSet) field.ErrorList {
	errs := validateMetaUpdate(&set.ObjectMeta, &old.ObjectMeta)
	errs = append(errs, validateOperationUpdate(&set.ObjectMeta, &old.ObjectMeta)...)
	spec, before, path := &set.Spec, &old.Spec, field.NewPath("spec")
	errs = append(errs, validateImmutable(spec.Selector, before.Selector, path.Child("selector"))...)
	errs = append(errs, validateImmutable(spec.RevisionHistoryLimit, before.RevisionHistoryLimit,
		path.Child("revisionHistoryLimit"))...)
	errs = append(errs, validateManagedSeedSpecUpdate(&spec.Template.Spec, &before.Template.Spec,
		path.Child("template", "spec"))...)
	errs = append(errs, gardencorev1beta1.ValidateShootTemplateUpdate(&spec.ShootTemplate, &before.ShootTemplate,
		path.Child("shootTemplate"))...)
	return append(errs, ValidateManagedSeedSet(set)...)
}

// validateSetSelector checks that the selector finds what is made from the templates.
func validateSetSelector(spec *ManagedSeedSetSpec, path *field.Path) field.ErrorList {
	at := path.Child("selector")
	if len(spec.Selector.MatchLabels) == 0 && len(spec.Selector.MatchExpressions) == 0 {
		return field.ErrorList{
			field.Required(at, "select the ManagedSeeds and Shoots of the set by a label of both templates"),
		}
	}
	errs := metav1validation.ValidateLabelSelector(&spec.Selector, metav1validation.LabelSelectorValidationOptions{},
		at)
	selector, err := metav1.LabelSelectorAsSelector(&spec.Selector)
	if err != nil || len(errs) > 0 {
		return errs
	}
	matches := func(meta *metav1.ObjectMeta, template *field.Path) {
		if !selector.Matches(labels.Set(meta.Labels)) {
			errs = append(errs, field.Invalid(template.Child("metadata", "labels"), meta.Labels,
				"must match "+at.String()))
		}
	}
	matches(&spec.Template.ObjectMeta, path.Child("template"))
	matches(&spec.ShootTemplate.ObjectMeta, path.Child("shootTemplate"))
	if seed, err := SeedTemplateOf(spec.Template.Spec.Gardenlet.Config); err == nil && seed != nil {
		matches(&seed.ObjectMeta, path.Child("template", "spec", "gardenlet", "config", "seedConfig"))
	}
	return errs
}

func validateUpdateStrategy(strategy *UpdateStrategy, path *field.Path) field.ErrorList {
	if strategy == nil {
		return nil
	}
	errs := validateSupported(strategy.Type, updateStrategyTypes, path.Child("type"))
	if strategy.RollingUpdate != nil {
		errs = append(errs, validateNotNegative(strategy.RollingUpdate.Partition,
			path.Child("rollingUpdate", "partition"))...)
	}
	return errs
}

// ValidateManagedSeedSetStatusUpdate checks a change of the status of a ManagedSeedSet.
func ValidateManagedSeedSetStatusUpdate(set, old *ManagedSeedSet) field.ErrorList {
	errs := validateMetaUpdate(&set.ObjectMeta, &old.ObjectMeta)
	status, before, path := &set.Status, &old.Status, field.NewPath("status")
	errs = append(errs, apivalidation.ValidateNonnegativeField(status.ObservedGeneration,
		path.Child("observedGeneration"))...)
	errs = append(errs, validateReplicas(status, path)...)
	errs = append(errs, validateNotShrinking(status.NextReplicaNumber, before.NextReplicaNumber,
		path.Child("nextReplicaNumber"))...)
	errs = append(errs, validateNotShrinking(orZero(status.CollisionCount), orZero(before.CollisionCount),
		path.Child("collisionCount"))...)
	if status.PendingReplica != nil {
		errs = append(errs, validatePendingReplica(status.PendingReplica, set.Name, path.Child("pendingReplica"))...)
	}
	return errs
}

func validateReplicas(status *ManagedSeedSetStatus, path *field.Path) field.ErrorList {
	errs := validateNotNegative(&status.Replicas, path.Child("replicas"))
	for _, some := range []struct {
		name  string
		count int32
	}{
		{"readyReplicas", status.ReadyReplicas}, {"currentReplicas", status.CurrentReplicas},
		{"updatedReplicas", status.UpdatedReplicas},
	} {
		errs = append(errs, validateNotNegative(&some.count, path.Child(some.name))...)
		if some.count > status.Replicas {
			errs = append(errs, field.Invalid(path.Child(some.name), some.count, "must not be more than replicas"))
		}
	}
	return errs
}

func validateNotShrinking(count, before int32, path *field.Path) field.ErrorList {
	if count >= before {
		return nil
	}
	return field.ErrorList{field.Invalid(path, count, "must not shrink; it was "+strconv.Itoa(int(before)))}
}

func orZero(count *int32) int32 {
	if count == nil {
		return 0
	}
	return *count
}

func validatePendingReplica(pending *PendingReplica, set string, path *field.Path) field.ErrorList {
	errs := validateSupported(&pending.Reason, pendingReplicaReasons, path.Child("reason"))
	if _, ok := ReplicaOrdinal(set, pending.Name); !ok {
		errs = append(errs, field.Invalid(path.Child("name"), pending.Name, "must be "+set+"-<ordinal>"))
	}
	return append(errs, validateNotNegative(pending.Retries, path.Child("retries"))...)
}

// ReplicaName is the name of a set's replica: of the ManagedSeed and of its Shoot.
func ReplicaName(set string, ordinal int32) string { return set + "-" + strconv.Itoa(int(ordinal)) }

// ReplicaOrdinal returns the ordinal in a replica's name, and whether it is one of the set's.
func ReplicaOrdinal(set, replica string) (int32, bool) {
	digits, ok := strings.CutPrefix(replica, set+"-")
	if !ok {
		return 0, false
	}
	ordinal, err := strconv.ParseInt(digits, 10, 32)
	return int32(ordinal), err == nil && ordinal >= 0 && ReplicaName(set, int32(ordinal)) == replica
}
