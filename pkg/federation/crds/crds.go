// Package crds brings the custom resource definitions of a fleet into its API.
package crds

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/charts"
	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apply"
	"github.com/trellis-garden/trellis/pkg/crd"
)

// folder holds the definitions, one per file.
const folder = "crds/fleet"

// Objects reads the definitions, in the order of their file names.
func Objects() ([]*unstructured.Unstructured, error) {
	definitions, err := crd.Read(charts.FS, folder)
	if err != nil {
		return nil, err
	}
	for _, definition := range definitions {
		if err := addOwnVersion(definition); err != nil {
			return nil, fmt.Errorf("definition %s: %w", definition.GetName(), err)
		}
	}
	return definitions, nil
}

// addOwnVersion has Clusters served in a second version, equal to the one that is stored but for its name: the version
// of Karmada is served by the federation process while that runs (package memberapi), and nothing in Trellis is to
// depend on that.
func addOwnVersion(object *unstructured.Unstructured) error {
	if object.GetName() != "clusters."+clusterv1alpha1.GroupVersion.Group {
		return nil
	}
	versions, _, err := unstructured.NestedSlice(object.Object, "spec", "versions")
	if err != nil {
		return err
	}
	if len(versions) != 1 {
		return fmt.Errorf("spec.versions: has %d, want the one of Karmada", len(versions))
	}
	own, ok := runtime.DeepCopyJSONValue(versions[0]).(map[string]any)
	if !ok {
		return errors.New("spec.versions: is no list of objects")
	}
	own["name"], own["storage"] = clusterv1alpha1.GroupVersion.Version, false
	return unstructured.SetNestedSlice(object.Object, append(versions, own), "spec", "versions")
}

// Install applies the definitions and waits until the API server serves them. Applying them again changes nothing.
func Install(ctx context.Context, c client.Client) error {
	definitions, err := Objects()
	if err != nil {
		return err
	}
	return crd.Install(ctx, c, apply.Federation, definitions...)
}
