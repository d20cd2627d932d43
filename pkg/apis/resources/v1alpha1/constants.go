package v1alpha1

import gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"

// Conditions of a ManagedResource.
const (
	ResourcesApplied     gardencorev1beta1.ConditionType = "ResourcesApplied"
	ResourcesHealthy     gardencorev1beta1.ConditionType = "ResourcesHealthy"
	ResourcesProgressing gardencorev1beta1.ConditionType = "ResourcesProgressing"
)

// Reasons of conditions.
const (
	ConditionApplySucceeded          = "ApplySucceeded"
	ConditionApplyFailed             = "ApplyFailed"
	ConditionApplyProgressing        = "ApplyProgressing"
	ConditionDecodingFailed          = "DecodingFailed"
	ConditionDeletionFailed          = "DeletionFailed"
	ConditionDeletionPending         = "DeletionPending"
	ConditionManagedResourceIgnored  = "ManagedResourceIgnored"
	ConditionHealthChecksPending     = "ChecksPending"
	ReleaseOfOrphanedResourcesFailed = "ReleaseOfOrphanedResourcesFailed"
)

// Annotations and labels.
const (
	// FinalizerName is the finalizer of ManagedResources without a class; others append -<class>.
	FinalizerName = "resources.gardener.cloud/gardener-resource-manager"
	// ManagedBy is the label of applied objects.
	ManagedBy = "resources.gardener.cloud/managed-by"
	// GardenerManager is the value of ManagedBy.
	GardenerManager = "gardener"
	// Ignore is the annotation, "true", of ManagedResources and objects that are to be left alone.
	Ignore = "resources.gardener.cloud/ignore"
	// Mode is the annotation of objects that says how they are kept.
	Mode = "resources.gardener.cloud/mode"
	// ModeIgnore is the mode of objects that are to be left alone.
	ModeIgnore = "Ignore"
	// KeepObject is the annotation, "true", of objects that stay when they leave the ManagedResource.
	KeepObject = "resources.gardener.cloud/keep-object"
	// DeleteOnInvalidUpdate is the annotation, "true", of objects that are replaced when they cannot be updated.
	DeleteOnInvalidUpdate = "resources.gardener.cloud/delete-on-invalid-update"
	// FinalizeDeletionAfter is the annotation with the time after which finalizers of deleted objects are removed.
	FinalizeDeletionAfter = "resources.gardener.cloud/finalize-deletion-after"
	// PreserveReplicas is the annotation, "true", of objects whose replicas others set.
	PreserveReplicas = "resources.gardener.cloud/preserve-replicas"
	// PreserveResources is the annotation, "true", of objects whose resource requests others set.
	PreserveResources = "resources.gardener.cloud/preserve-resources"
	// SkipHealthCheck is the annotation, "true", of objects whose health does not count.
	SkipHealthCheck = "resources.gardener.cloud/skip-health-check"
	// Asleep is the annotation, "true", of the Secret gardener-internal of a hibernated shoot: its machines are gone,
	// and its API server is stopped on purpose.
	Asleep = "trellis.garden/asleep"
	// DescriptionAnnotation is the annotation of applied objects that says not to change them.
	DescriptionAnnotation = "resources.gardener.cloud/description"
	// OriginAnnotation is the annotation of applied objects with <cluster id>:<namespace>/<managed resource>.
	OriginAnnotation = "resources.gardener.cloud/origin"
	// ResourceManagerClass says, on namespaces and Secrets, which resource-manager cares for them.
	ResourceManagerClass = "resources.gardener.cloud/class"
	// ResourceManagerPurpose is the label that says what a Secret is for.
	ResourceManagerPurpose = "resources.gardener.cloud/purpose"
	// LabelPurposeTokenRequest is the purpose of Secrets that resource-manager fills with a service account's token.
	LabelPurposeTokenRequest = "token-requestor"
	// ServiceAccountName is the annotation with the name of the service account.
	ServiceAccountName = "serviceaccount.resources.gardener.cloud/name"
	// ServiceAccountNamespace is the annotation with the namespace of the service account.
	ServiceAccountNamespace = "serviceaccount.resources.gardener.cloud/namespace"
	// ServiceAccountTokenExpirationDuration is the annotation with the wanted life of the token.
	ServiceAccountTokenExpirationDuration = "serviceaccount.resources.gardener.cloud/token-expiration-duration"
	// ServiceAccountTokenRenewTimestamp is the annotation with the time when the token is renewed.
	ServiceAccountTokenRenewTimestamp = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"
	// DataKeyToken is the key of the token.
	DataKeyToken = "token"
	// LabelGarbageCollectable is the label, "true", of ConfigMaps and Secrets that are deleted when nothing refers to
	// them.
	LabelGarbageCollectable = "resources.gardener.cloud/garbage-collectable-reference"
	// BrotliCompressionSuffix ends keys of compressed manifests.
	BrotliCompressionSuffix = ".br"
	// CompressedDataKey is the key of compressed manifests.
	CompressedDataKey = "data.yaml" + BrotliCompressionSuffix
	// ClassSeed is the class of ManagedResources for the seed.
	ClassSeed = "seed"
	// ClassGarden is the class of ManagedResources for the garden.
	ClassGarden = "garden"
)
