package helm

import (
	"bytes"
	"fmt"

	"helm.sh/helm/v3/pkg/postrender"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/manifests"
)

// changer changes each object that a chart renders.
type changer func(*unstructured.Unstructured) error

func (r Release) postRenderer() postrender.PostRenderer {
	if r.Change == nil {
		return nil
	}
	return changer(r.Change)
}

// Run implements postrender.PostRenderer.
func (change changer) Run(rendered *bytes.Buffer) (*bytes.Buffer, error) {
	objects, err := manifests.Decode(rendered.Bytes())
	if err != nil {
		return nil, fmt.Errorf("rendered chart: %w", err)
	}
	changed := &bytes.Buffer{}
	for _, object := range objects {
		if err := change(object); err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		changed.WriteString("---\n")
		changed.Write(text)
	}
	return changed, nil
}
