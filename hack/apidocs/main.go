// apidocs writes the reference of the API of gardens, seeds and fleets: a page in Markdown per group and version, made
// from OpenAPI definitions; for the garden, they are those that it serves.
//
//	apidocs <folder>
package main

import (
	"maps"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	custom "github.com/trellis-garden/trellis/hack/apidocs/openapi"
	"github.com/trellis-garden/trellis/hack/pages"
	"github.com/trellis-garden/trellis/pkg/apis/generated/openapi"
)

func main() { pages.Main("apidocs", newReference(definitions()).pages) }

// definitions returns the schemas by model name. References are model names behind modelReference.
func definitions() map[string]spec.Schema {
	reference := func(name string) spec.Ref { return spec.MustCreateRef(modelReference + modelName(name)) }
	all := openapi.GetOpenAPIDefinitions(reference)
	maps.Copy(all, custom.GetOpenAPIDefinitions(reference))
	schemas := map[string]spec.Schema{}
	for name, definition := range all {
		schemas[name] = definition.Schema
	}
	return schemas
}

// modelName is the model name of a type. Custom resources refer to types of the garden's API by their path in Go,
// because the generator works on the two apart.
func modelName(name string) string {
	if path, found := strings.CutPrefix(name, "github.com/trellis-garden/trellis/pkg/apis/"); found {
		return "cloud.gardener." + strings.ReplaceAll(path, "/", ".")
	}
	return name
}
