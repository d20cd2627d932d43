package admission

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Labels and annotations ask for operations, let fleets grow and select what else happens to an object. Who owns the
// object writes them; a gardenlet takes the requests away that it has carried out.

// operationAnnotations ask for operations, separated by semicolons.
var operationAnnotations = []string{gardencorev1beta1.GardenerOperation, gardencorev1beta1.GardenerMaintenanceOperation}

// changedMarks returns the paths of the labels and annotations that an update by a gardenlet changes and that are not
// its to change. Finalizers and owners see changesMetadata.
func changedMarks(object, old metav1.Object, subresource string) []string {
	_, isShoot := object.(*gardencorev1beta1.Shoot)
	derived := func(label string) bool {
		return subresource == "" && isExtensionLabel(label) ||
			isShoot && (strings.HasPrefix(label, gardencorev1beta1.LabelPrefixSeedName) ||
				label == gardencorev1beta1.LabelShootSelfHosted)
	}
	changed := changedEntries("metadata.labels", object.GetLabels(), old.GetLabels(), derived)
	_, confirmed := object.GetAnnotations()[gardencorev1beta1.AnnotationConfirmationRestoreETCD]
	isRequest := func(key string) bool {
		return slices.Contains(operationAnnotations, key) ||
			key == gardencorev1beta1.AnnotationConfirmationRestoreETCD && !confirmed
	}
	changed = append(changed, changedEntries("metadata.annotations", object.GetAnnotations(), old.GetAnnotations(),
		isRequest)...)
	return append(changed, newOperations(object.GetAnnotations(), old.GetAnnotations())...)
}

// changedEntries returns the paths of the entries that differ between two maps; ignored ones follow from the object.
func changedEntries(path string, now, before map[string]string, ignored func(key string) bool) []string {
	var changed []string
	for key := range mergedKeys(now, before) {
		value, has := now[key]
		old, had := before[key]
		if (value != old || has != had) && (ignored == nil || !ignored(key)) {
			changed = append(changed, fmt.Sprintf("%s[%s]", path, key))
		}
	}
	slices.Sort(changed)
	return changed
}

// newOperations returns the paths of the annotations that ask for more than before.
func newOperations(now, before map[string]string) []string {
	var paths []string
	for _, key := range operationAnnotations {
		asked := gardencorev1beta1.SplitOperations(before[key])
		if slices.ContainsFunc(gardencorev1beta1.SplitOperations(now[key]),
			func(operation string) bool { return !slices.Contains(asked, operation) }) {
			paths = append(paths, fmt.Sprintf("metadata.annotations[%s]", key))
		}
	}
	return paths
}

// refuseForgery returns what a gardenlet writes into a status that rights follow from, its own or those of other seeds;
// empty when there is nothing. The status of shoots is looked at whoever writes it, see shoot_status.go.
func refuseForgery(seed string, object, old runtime.Object) string {
	if entry, ok := object.(*gardencorev1beta1.BackupEntry); ok {
		return givesAway(seed, entry.Status.SeedName, old.(*gardencorev1beta1.BackupEntry).Status.SeedName)
	}
	return ""
}

// givesAway returns why a seed may not write the name of a seed into a status: it takes over, and hands to nobody.
func givesAway(seed string, now, before *string) string {
	if name := ptr.Deref(now, ""); name != ptr.Deref(before, "") && name != seed && name != "" {
		return fmt.Sprintf("status.seedName is not set to %q by seed %q", name, seed)
	}
	return ""
}
