package bindings

import "sigs.k8s.io/controller-runtime/pkg/client"

// SetLabel of an object.
func SetLabel(object client.Object, key, value string) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	object.SetLabels(labels)
}

// SetAnnotation of an object.
func SetAnnotation(object client.Object, key, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}

// RemoveMarks deletes labels and annotations of these keys.
func RemoveMarks(object client.Object, keys ...string) {
	for _, key := range keys {
		delete(object.GetLabels(), key)
		delete(object.GetAnnotations(), key)
	}
}
