package v1alpha1

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// What validators of several kinds share. Every error names the field and says what would be right.

var pullPolicies = []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}

// validateMeta checks the metadata of an object, which has to lie in the namespace garden.
func validateMeta(meta *metav1.ObjectMeta) field.ErrorList {
	path := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMeta(meta, true, apivalidation.NameIsDNSLabel, path)
	if strings.Contains(meta.Name, "--") {
		errs = append(errs, field.Invalid(path.Child("name"), meta.Name, `must not contain "--"`))
	}
	if meta.Namespace != "" && meta.Namespace != gardencorev1beta1.GardenNamespace {
		errs = append(errs, field.Invalid(path.Child("namespace"), meta.Namespace,
			fmt.Sprintf("must be %q, the namespace of the garden's own objects", gardencorev1beta1.GardenNamespace)))
	}
	return errs
}

func validateMetaUpdate(meta, old *metav1.ObjectMeta) field.ErrorList {
	return apivalidation.ValidateObjectMetaUpdate(meta, old, field.NewPath("metadata"))
}

func operationPath() *field.Path {
	return field.NewPath("metadata", "annotations").Key(gardencorev1beta1.GardenerOperation)
}

// validateOperation accepts the operations that a kind has.
func validateOperation(meta *metav1.ObjectMeta, supported ...string) field.ErrorList {
	operation := meta.Annotations[gardencorev1beta1.GardenerOperation]
	if operation == "" || slices.Contains(supported, operation) {
		return nil
	}
	return field.ErrorList{field.NotSupported(operationPath(), operation, supported)}
}

// validateOperationUpdate lets an operation that is asked for be carried out before another is.
func validateOperationUpdate(meta, old *metav1.ObjectMeta) field.ErrorList {
	operation, before := meta.Annotations[gardencorev1beta1.GardenerOperation],
		old.Annotations[gardencorev1beta1.GardenerOperation]
	if operation == "" || before == "" || operation == before {
		return nil
	}
	return field.ErrorList{
		field.Forbidden(operationPath(), fmt.Sprintf("cannot be %q before %q has been carried out", operation, before)),
	}
}

func validateImmutable[T any](value, old T, path *field.Path) field.ErrorList {
	if apiequality.Semantic.DeepEqual(value, old) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, "cannot be changed")}
}

func validateSupported[T ~string](value *T, supported []T, path *field.Path) field.ErrorList {
	if value == nil || slices.Contains(supported, *value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, *value, supported)}
}

func validateNotNegative(value *int32, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	return apivalidation.ValidateNonnegativeField(int64(*value), path)
}

func validateDeployment(deployment *GardenletDeployment, path *field.Path) field.ErrorList {
	errs := validateNotNegative(deployment.ReplicaCount, path.Child("replicaCount"))
	errs = append(errs, validateNotNegative(deployment.RevisionHistoryLimit, path.Child("revisionHistoryLimit"))...)
	if deployment.ServiceAccountName != nil {
		for _, message := range apivalidation.ValidateServiceAccountName(*deployment.ServiceAccountName, false) {
			errs = append(errs, field.Invalid(path.Child("serviceAccountName"), *deployment.ServiceAccountName,
				message))
		}
	}
	if deployment.Image != nil {
		errs = append(errs, validateImage(deployment.Image, path.Child("image"))...)
	}
	errs = append(errs, metav1validation.ValidateLabels(deployment.PodLabels, path.Child("podLabels"))...)
	errs = append(errs, apivalidation.ValidateAnnotations(deployment.PodAnnotations, path.Child("podAnnotations"))...)
	return append(errs, validateTaken(deployment, path)...)
}

// Names that gardenlet's chart uses itself.
var (
	chartPodLabels   = []string{"app", "role"}
	chartVolumes     = []string{"config", "tmp"}
	chartMountPaths  = []string{"/etc/gardenlet", "/tmp"}
	chartEnvironment = []string{"GOGC", "HOME", "IMAGE_VECTOR_OVERWRITE"}
)

// validateTaken refuses what would collide with the chart's own.
func validateTaken(deployment *GardenletDeployment, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	refuse := func(taken []string, name string, at *field.Path) {
		if slices.Contains(taken, name) {
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("%q is used by gardenlet's chart itself", name)))
		}
	}
	for _, label := range slices.Sorted(maps.Keys(deployment.PodLabels)) {
		refuse(chartPodLabels, label, path.Child("podLabels").Key(label))
	}
	for i, volume := range deployment.AdditionalVolumes {
		refuse(chartVolumes, volume.Name, path.Child("additionalVolumes").Index(i).Child("name"))
	}
	for i, mount := range deployment.AdditionalVolumeMounts {
		refuse(chartMountPaths, mount.MountPath, path.Child("additionalVolumeMounts").Index(i).Child("mountPath"))
	}
	for i, variable := range deployment.Env {
		refuse(chartEnvironment, variable.Name, path.Child("env").Index(i).Child("name"))
	}
	return errs
}

func validateImage(image *Image, path *field.Path) field.ErrorList {
	errs := validateNotEmpty(image.Ref, path.Child("ref"))
	errs = append(errs, validateNotEmpty(image.Repository, path.Child("repository"))...)
	errs = append(errs, validateNotEmpty(image.Tag, path.Child("tag"))...)
	if image.Ref != nil && (image.Repository != nil || image.Tag != nil) {
		errs = append(errs, field.Forbidden(path.Child("ref"), "cannot be set together with repository or tag"))
	}
	return append(errs, validateSupported(image.PullPolicy, pullPolicies, path.Child("pullPolicy"))...)
}

func validateNotEmpty(value *string, path *field.Path) field.ErrorList {
	if value == nil || *value != "" {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *value, "must not be empty; leave it out for the default")}
}
