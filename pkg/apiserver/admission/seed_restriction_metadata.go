package admission

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apiserver/seedauthorizer"
)

// Finalizers, owners, labels and annotations make others act: a finalizer holds up a deletion, an owner has the garbage
// collector delete, and controllers select by labels.

// finalizersOfGardenlets are those that gardenlets add and take away, by resource. Extensions have none.
var finalizersOfGardenlets = map[schema.GroupResource]string{
	gardencorev1beta1.Resource("seeds"):                   gardencorev1beta1.GardenerName,
	gardencorev1beta1.Resource("shoots"):                  gardencorev1beta1.GardenerName,
	gardencorev1beta1.Resource("backupbuckets"):           gardencorev1beta1.GardenerName,
	gardencorev1beta1.Resource("backupentries"):           gardencorev1beta1.GardenerName,
	gardencorev1beta1.Resource("controllerinstallations"): gardencorev1beta1.FinalizerControllerInstallation,
	operationsv1alpha1.Resource("bastions"):               gardencorev1beta1.GardenerName,
	seedmanagementv1alpha1.Resource("managedseeds"):       gardencorev1beta1.GardenerName,
}

// changesMetadata returns what a seed changes of an object's metadata that is not its business; empty when there is
// nothing. Labels and annotations of what others make are checked with the rest of it.
func changesMetadata(identity seedauthorizer.Identity, a admission.Attributes) string {
	if a.GetObject() == nil {
		return "" // a deletion
	}
	object, err := meta.Accessor(a.GetObject())
	if err != nil {
		return "" // no object that is stored
	}
	var old metav1.Object = &metav1.ObjectMeta{}
	if stored, err := meta.Accessor(a.GetOldObject()); a.GetOldObject() != nil && err == nil {
		old = stored
	}
	own := ""
	if !identity.Extension {
		own = finalizersOfGardenlets[a.GetResource().GroupResource()]
	}
	if changed := sets.New(object.GetFinalizers()...).
		SymmetricDifference(sets.New(old.GetFinalizers()...)).Delete(own); len(changed) > 0 {
		return fmt.Sprintf("metadata.finalizers: %s: neither added nor removed by seeds",
			strings.Join(sets.List(changed), ", "))
	}
	if !apiequality.Semantic.DeepEqual(object.GetOwnerReferences(), old.GetOwnerReferences()) {
		return "metadata.ownerReferences: not changed by seeds"
	}
	return foreignMarks(object, old)
}

// foreignMarks returns a label or annotation that a seed gives to what it makes, and that is not known; empty when
// there is none.
func foreignMarks(object, old metav1.Object) string {
	var known, confirmed map[string]string
	switch object.(type) {
	case *gardencorev1beta1.ShootState:
		confirmed = map[string]string{gardencorev1beta1.ConfirmationDeletion: "true"}
	case *gardencorev1beta1.InternalSecret:
		shoot, role, _ := strings.Cut(object.GetName(), ".")
		known = map[string]string{gardencorev1beta1.LabelShootName: shoot, gardencorev1beta1.GardenRole: role}
	default:
		return ""
	}
	if key, found := firstForeign(object.GetLabels(), old.GetLabels(), known); found {
		return fmt.Sprintf("metadata.labels[%s]: not set by seeds", key)
	}
	if key, found := firstForeign(object.GetAnnotations(), old.GetAnnotations(), confirmed); found {
		return fmt.Sprintf("metadata.annotations[%s]: not set by seeds", key)
	}
	return ""
}

// firstForeign returns the first key whose value is neither known nor as it was.
func firstForeign(now, before, known map[string]string) (key string, found bool) {
	foreign := sets.New[string]()
	for key, value := range now {
		was, had := before[key]
		wanted, isKnown := known[key]
		if (!had || was != value) && (!isKnown || wanted != value) {
			foreign.Insert(key)
		}
	}
	if len(foreign) == 0 {
		return "", false
	}
	return sets.List(foreign)[0], true
}

// notShootSecret returns why an InternalSecret is none that a seed keeps for a shoot, whichever shoot that is; empty
// when it is one.
func notShootSecret(object *gardencorev1beta1.InternalSecret) string {
	_, suffix, _ := strings.Cut(object.Name, ".")
	if !seedauthorizer.IsShootSecret(suffix) {
		return fmt.Sprintf("metadata.name: %q is none of the suffixes of a shoot's secrets", suffix)
	}
	if object.Type != "" && object.Type != corev1.SecretTypeOpaque {
		return fmt.Sprintf("type: InternalSecrets made by seeds are of type %s, not %s", corev1.SecretTypeOpaque,
			object.Type)
	}
	return ""
}
