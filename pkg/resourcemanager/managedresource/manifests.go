// Package managedresource applies the objects of ManagedResources to their target cluster with server-side apply,
// deletes those that are no longer listed, and reports whether the rest is applied, healthy and settled.
package managedresource

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

// description warns people who look at an applied object.
const description = "DO NOT EDIT - This resource is managed by resource-manager.\nAny modifications are discarded " +
	"and the resource is returned to the original state."

// Checksum identifies the manifests of several Secrets.
func Checksum(secrets []map[string][]byte) string {
	hash := sha256.New()
	for _, data := range secrets {
		for _, key := range slices.Sorted(maps.Keys(data)) {
			fmt.Fprintf(hash, "%s:%d:", key, len(data[key]))
			hash.Write(data[key])
		}
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// Mark adds the origin, the warning, the managed-by label and the injected labels. Injected labels also go to pod
// templates, so that selectors of network policies and the like find the pods.
func Mark(object *unstructured.Unstructured, origin string, inject map[string]string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[resourcesv1alpha1.OriginAnnotation] = origin
	annotations[resourcesv1alpha1.DescriptionAnnotation] = description
	object.SetAnnotations(annotations)

	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, inject)
	labels[resourcesv1alpha1.ManagedBy] = resourcesv1alpha1.GardenerManager
	object.SetLabels(labels)

	template := []string{"spec", "template", "metadata", "labels"}
	if podLabels, found, err := unstructured.NestedStringMap(object.Object, template...); found && err == nil &&
		len(inject) > 0 {
		maps.Copy(podLabels, inject)
		_ = unstructured.SetNestedStringMap(object.Object, podLabels, template...)
	}
}

// ignored says whether an object is neither applied nor deleted.
func ignored(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[resourcesv1alpha1.Mode] == resourcesv1alpha1.ModeIgnore
}

// Rank orders kinds: what others need comes first. Objects of equal rank are applied at the same time.
func Rank(gk string) int {
	switch gk {
	case "Namespace", "CustomResourceDefinition.apiextensions.k8s.io":
		return 0
	case "PriorityClass.scheduling.k8s.io", "StorageClass.storage.k8s.io", "RuntimeClass.node.k8s.io", "ServiceAccount",
		"ClusterRole.rbac.authorization.k8s.io", "Role.rbac.authorization.k8s.io":
		return 1
	case "ClusterRoleBinding.rbac.authorization.k8s.io", "RoleBinding.rbac.authorization.k8s.io", "Secret", "ConfigMap":
		return 2
	case "MutatingWebhookConfiguration.admissionregistration.k8s.io",
		"ValidatingWebhookConfiguration.admissionregistration.k8s.io", "APIService.apiregistration.k8s.io":
		return 4
	default:
		return 3
	}
}

// lastRank is the highest value of Rank.
const lastRank = 4

// Phases groups objects by rank, lowest first; empty groups are left out.
func Phases(objects []*unstructured.Unstructured) [][]*unstructured.Unstructured {
	groups := make([][]*unstructured.Unstructured, lastRank+1)
	for _, object := range objects {
		rank := Rank(object.GroupVersionKind().GroupKind().String())
		groups[rank] = append(groups[rank], object)
	}
	return slices.DeleteFunc(groups, func(group []*unstructured.Unstructured) bool { return len(group) == 0 })
}

// Reference identifies an object in a ManagedResource's status.
func Reference(object *unstructured.Unstructured) resourcesv1alpha1.ObjectReference {
	keep := map[string]string{}
	for _, key := range []string{resourcesv1alpha1.KeepObject, resourcesv1alpha1.Mode} {
		if value, ok := object.GetAnnotations()[key]; ok {
			keep[key] = value
		}
	}
	if len(keep) == 0 {
		keep = nil
	}
	return resourcesv1alpha1.ObjectReference{
		ObjectReference: corev1.ObjectReference{
			APIVersion: object.GetAPIVersion(),
			Kind:       object.GetKind(),
			Namespace:  object.GetNamespace(),
			Name:       object.GetName(),
		},
		Annotations: keep,
	}
}

// SortReferences brings references into a stable order.
func SortReferences(refs []resourcesv1alpha1.ObjectReference) {
	slices.SortFunc(refs, func(a, b resourcesv1alpha1.ObjectReference) int {
		return strings.Compare(identity(a)+a.APIVersion, identity(b)+b.APIVersion)
	})
}

// identity is what makes two references the same object, whatever the API version.
func identity(ref resourcesv1alpha1.ObjectReference) string {
	gvk := ref.GroupVersionKind()
	return gvk.Group + "/" + gvk.Kind + "/" + ref.Namespace + "/" + ref.Name
}

// Stale returns the references of old that are not in current. A kind that moved to an equivalent group (Ingress of
// extensions and networking.k8s.io, say) is the same object.
func Stale(old, current []resourcesv1alpha1.ObjectReference,
	equivalences Equivalences) []resourcesv1alpha1.ObjectReference {
	listed := map[string]bool{}
	for _, ref := range current {
		for _, id := range equivalences.identities(ref) {
			listed[id] = true
		}
	}
	var stale []resourcesv1alpha1.ObjectReference
	for _, ref := range old {
		if !listed[identity(ref)] {
			stale = append(stale, ref)
		}
	}
	return stale
}
