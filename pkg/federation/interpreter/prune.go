package interpreter

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RetainReplicasLabel (value "true"), on a template, leaves the number of replicas to the member once the object is
// there, for example to an autoscaler that runs in it.
const RetainReplicasLabel = "resourcetemplate.karmada.io/retain-replicas"

func prune(template *unstructured.Unstructured) *unstructured.Unstructured {
	result := template.DeepCopy()
	delete(result.Object, "status")
	kept := map[string]any{}
	metadata, _ := result.Object["metadata"].(map[string]any)
	for _, field := range []string{"name", "namespace", "labels", "annotations"} {
		if value, found := metadata[field]; found {
			kept[field] = value
		}
	}
	result.Object["metadata"] = kept
	dropAnnotations(result, corev1.LastAppliedConfigAnnotation)
	if more := kindOf(result).prune; more != nil {
		more(result)
	}
	removeNulls(result.Object)
	return result
}

// retain takes over, from what the member has, the fields that it decides about. Leaving them out would not do: by
// server-side apply, fields go that their owner leaves out and nobody else has changed.
func retain(wanted, observed *unstructured.Unstructured) *unstructured.Unstructured {
	k := kindOf(wanted)
	paths := k.retained
	if k.replicas != nil && wanted.GetLabels()[RetainReplicasLabel] == "true" {
		paths = append(slices.Clone(paths), k.replicas)
	}
	result := wanted
	for _, path := range paths {
		value, found, _ := unstructured.NestedFieldCopy(observed.Object, path...)
		if !found {
			continue
		}
		if result == wanted {
			result = wanted.DeepCopy()
		}
		// a field that cannot be set because its parent is no object is the member's to refuse
		_ = unstructured.SetNestedField(result.Object, value, path...)
	}
	return result
}

func dropAnnotations(object *unstructured.Unstructured, keys ...string) {
	annotations := object.GetAnnotations()
	for _, key := range keys {
		delete(annotations, key)
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	object.SetAnnotations(annotations)
}

// removeNulls drops fields that hold null: they say nothing, but server-side apply would compare them.
func removeNulls(value map[string]any) {
	for key, child := range value {
		switch c := child.(type) {
		case nil:
			delete(value, key)
		case map[string]any:
			removeNulls(c)
		case []any:
			for _, item := range c {
				if m, ok := item.(map[string]any); ok {
					removeNulls(m)
				}
			}
		}
	}
}

// pruneJob drops the selector that the API server generated from the template's UID.
func pruneJob(object *unstructured.Unstructured) {
	if manual, _, _ := unstructured.NestedBool(object.Object, "spec", "manualSelector"); manual {
		return
	}
	unstructured.RemoveNestedField(object.Object, "spec", "selector")
	for _, label := range []string{
		"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name",
	} {
		unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "labels", label)
		unstructured.RemoveNestedField(object.Object, "metadata", "labels", label)
	}
}

// prunePod drops what admission added for the default service account.
func prunePod(object *unstructured.Unstructured) {
	unstructured.RemoveNestedField(object.Object, "spec", "nodeName")
	dropTokenVolumes(object)
}

const tokenVolumePrefix = "kube-api-access-"

func dropTokenVolumes(object *unstructured.Unstructured) {
	dropNamed(object.Object, tokenVolumePrefix, "spec", "volumes")
	for _, list := range []string{"containers", "initContainers"} {
		containers, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", list)
		items, _ := containers.([]any)
		for _, item := range items {
			if container, ok := item.(map[string]any); ok {
				dropNamed(container, tokenVolumePrefix, "volumeMounts")
			}
		}
	}
}

// dropNamed removes the entries of a list whose name has the prefix.
func dropNamed(object map[string]any, prefix string, path ...string) {
	found, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	list, ok := found.([]any)
	if !ok {
		return
	}
	var kept []any
	for _, item := range list {
		entry, _ := item.(map[string]any)
		if name, _ := entry["name"].(string); !strings.HasPrefix(name, prefix) {
			kept = append(kept, item)
		}
	}
	if len(kept) == 0 {
		unstructured.RemoveNestedField(object, path...)
		return
	}
	parent, _, _ := unstructured.NestedFieldNoCopy(object, path[:len(path)-1]...)
	if len(path) == 1 {
		parent = object
	}
	parent.(map[string]any)[path[len(path)-1]] = kept
}

// pruneSecret drops the token of a service account, which each cluster issues itself.
func pruneSecret(object *unstructured.Unstructured) {
	if object.Object["type"] != "kubernetes.io/service-account-token" {
		return
	}
	delete(object.Object, "data")
	dropAnnotations(object, "kubernetes.io/service-account.uid")
}

// pruneService drops addresses and ports that only mean something where they were allocated.
func pruneService(object *unstructured.Unstructured) {
	spec := section(object, "spec")
	if spec["clusterIP"] != "None" {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	delete(spec, "healthCheckNodePort")
	delete(spec, "ipFamilies")
	delete(spec, "ipFamilyPolicy")
	if spec["type"] == "LoadBalancer" {
		ports, _ := spec["ports"].([]any)
		for _, item := range ports {
			if port, ok := item.(map[string]any); ok {
				delete(port, "nodePort")
			}
		}
	}
}
