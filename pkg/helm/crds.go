package helm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const fieldManager = "trellis-helm"

// applyCRDs applies what lies in the chart's crds folders and waits until the API server serves it. Helm itself installs
// them once and never updates them.
func (c *Client) applyCRDs(ctx context.Context, chart *chart.Chart) error {
	var applied []*unstructured.Unstructured
	for _, file := range chart.CRDObjects() {
		objects, err := decodeObjects(file.File.Data)
		if err != nil {
			return fmt.Errorf("%s: %w", file.Filename, err)
		}
		for _, object := range objects {
			err := c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldManager), client.ForceOwnership)
			if err != nil {
				return fmt.Errorf("applying %s %s of %s: %w", object.GetKind(), object.GetName(), file.Filename, err)
			}
			applied = append(applied, object)
		}
	}
	if len(applied) == 0 {
		return nil
	}
	for _, object := range applied {
		if err := c.waitEstablished(ctx, object); err != nil {
			return err
		}
	}
	c.getter.forget()
	return nil
}

func (c *Client) waitEstablished(ctx context.Context, object *unstructured.Unstructured) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		return established(object)
	})
	if err != nil {
		return fmt.Errorf("custom resource definition %s is not served: %w", object.GetName(), err)
	}
	return nil
}

func established(object *unstructured.Unstructured) (bool, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, crd); err != nil {
		return false, err
	}
	for _, condition := range crd.Status.Conditions {
		if condition.Type == apiextensionsv1.Established {
			return condition.Status == apiextensionsv1.ConditionTrue, nil
		}
	}
	return false, nil
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
