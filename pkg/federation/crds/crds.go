// Package crds brings the custom resource definitions of a fleet into its API.
package crds

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/charts"
	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// folder holds the definitions, one per file.
const folder = "crds/fleet"

// readyTimeout bounds how long the API server may take to serve a new kind.
const readyTimeout = 30 * time.Second

// Objects reads the definitions, in the order of their file names.
func Objects() ([]*unstructured.Unstructured, error) {
	entries, err := fs.ReadDir(charts.FS, folder)
	if err != nil {
		return nil, fmt.Errorf("definitions of fleets: %w", err)
	}
	var objects []*unstructured.Unstructured
	for _, entry := range entries {
		data, err := fs.ReadFile(charts.FS, folder+"/"+entry.Name())
		if err != nil {
			return nil, fmt.Errorf("definitions of fleets: %w", err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &object.Object); err != nil {
			return nil, fmt.Errorf("%s/%s: %w", folder, entry.Name(), err)
		}
		if err := addOwnVersion(object); err != nil {
			return nil, fmt.Errorf("%s/%s: %w", folder, entry.Name(), err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// addOwnVersion has Clusters served in a second version, equal to the one that is stored but for its name: the version of Karmada is
// served by the federation process while that runs (package memberapi), and nothing in Trellis is to depend on that.
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
	objects, err := Objects()
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("trellis-federation"), client.ForceOwnership); err != nil {
			return fmt.Errorf("applying definition %s: %w", object.GetName(), err)
		}
	}
	for _, object := range objects {
		if err := waitServed(ctx, c, object.GetName()); err != nil {
			return err
		}
	}
	return nil
}

func waitServed(ctx context.Context, c client.Client, name string) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		if err := c.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
			return false, err
		}
		return isEstablished(object), nil
	})
	if err != nil {
		return fmt.Errorf("definition %s is not served: %w", name, err)
	}
	return nil
}

func isEstablished(object *unstructured.Unstructured) bool {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range list {
		if condition, ok := item.(map[string]any); ok && condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}
