package helm

import (
	"context"
	"fmt"

	"helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-garden/trellis/pkg/apply"
	"github.com/trellis-garden/trellis/pkg/crd"
	"github.com/trellis-garden/trellis/pkg/manifests"
)

// applyCRDs applies what lies in the chart's crds folders and waits until the API server serves it. Helm itself
// installs them once and never updates them.
func (c *Client) applyCRDs(ctx context.Context, chart *chart.Chart) error {
	var definitions []*unstructured.Unstructured
	for _, file := range chart.CRDObjects() {
		objects, err := manifests.Decode(file.File.Data)
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
	if err := crd.Install(ctx, c.client, apply.Charts, definitions...); err != nil {
		return err
	}
	c.getter.forget()
	return nil
}
