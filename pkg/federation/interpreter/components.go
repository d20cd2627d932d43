package interpreter

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

func componentsOf(object *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	k := kindOf(object)
	if k.components == nil {
		return nil, nil
	}
	return k.components(object)
}
