package helm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/trellis-garden/trellis/pkg/crd"
)

const fieldManager = "trellis-helm"

// applyCRDs applies what lies in the chart's crds folders and waits until the API server serves it. Helm itself installs
// them once and never updates them.
func (c *Client) applyCRDs(ctx context.Context, chart *chart.Chart) error {
	var definitions []*unstructured.Unstructured
	for _, file := range chart.CRDObjects() {
		objects, err := decodeObjects(file.File.Data)
		if err != nil {
			return fmt.Errorf("%s: %w", file.Filename, err)
		}
		for _, object := range objects {
			if object.GetKind() != "CustomResourceDefinition" {
				return fmt.Errorf("%s: a %s is no custom resource definition", file.Filename, object.GetKind())
			}
			definitions = append(definitions, object)
		}
	}
	if len(definitions) == 0 {
		return nil
	}
	if err := crd.Install(ctx, c.client, fieldManager, definitions...); err != nil {
		return err
	}
	c.getter.forget()
	return nil
}

// decodeObjects reads the objects of a multi-document YAML or JSON text.
func decodeObjects(data []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", len(objects)+1, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}
