package managedresource

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/apply"
)

// stateKeys begin the labels and annotations in which Kubernetes' own servers and controllers keep state. Without them
// a bound claim would count as unbound, for example.
var stateKeys = []string{
	corev1.LabelMetadataName, "deployment.kubernetes.io/", "deprecated.daemonset.template.generation",
	"kubernetes.io/service-account.", "pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/",
}

// removeForeign takes labels and annotations off a live object that its manifest does not have, where the
// ManagedResource says so: applying leaves alone what others set.
func (a applier) removeForeign(ctx context.Context, desired, live *unstructured.Unstructured) error {
	metadata := map[string]any{}
	if foreign := foreignKeys(desired.GetLabels(), live.GetLabels()); a.ownLabels && len(foreign) > 0 {
		metadata["labels"] = foreign
	}
	if foreign := foreignKeys(desired.GetAnnotations(), live.GetAnnotations()); a.ownAnnotations && len(foreign) > 0 {
		metadata["annotations"] = foreign
	}
	if len(metadata) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	err = a.client.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), apply.ResourceManager)
	if err != nil {
		return fmt.Errorf("removing labels and annotations of others from %s: %w", describe(desired), err)
	}
	return nil
}

// foreignKeys maps the keys that are live and not desired to nothing, which in a patch removes them.
func foreignKeys(desired, live map[string]string) map[string]any {
	foreign := map[string]any{}
	for key := range live {
		if _, wanted := desired[key]; !wanted && !keepsState(key) {
			foreign[key] = nil
		}
	}
	return foreign
}

func keepsState(key string) bool {
	for _, prefix := range stateKeys {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}
