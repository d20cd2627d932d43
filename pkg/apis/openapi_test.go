package apis_test

import (
	"testing"

	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/builder3"

	"github.com/trellis-garden/trellis/pkg/apis"
	authenticationv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/authentication/v1alpha1"
	gardencorev1 "github.com/trellis-garden/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apis/generated/openapi"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// Every kind that garden-apiserver serves has a definition, under the name that the API server looks for, with all that
// it refers to and with its group, version and kind.
func TestOpenAPIDefinitionsAreComplete(t *testing.T) {
	scheme := apis.GardenScheme()
	config := genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions,
		openapinamer.NewDefinitionNamer(scheme))
	for gvk := range scheme.AllKnownTypes() {
		switch gvk.GroupVersion() {
		case gardencorev1beta1.SchemeGroupVersion, gardencorev1.SchemeGroupVersion, securityv1alpha1.SchemeGroupVersion,
			seedmanagementv1alpha1.SchemeGroupVersion, operationsv1alpha1.SchemeGroupVersion,
			authenticationv1alpha1.SchemeGroupVersion:
		default:
			continue
		}
		name, err := scheme.ToOpenAPIDefinitionName(gvk)
		if err != nil {
			t.Errorf("%s has no name: %v", gvk, err)
			continue
		}
		definitions, err := builder3.BuildOpenAPIDefinitionsForResources(config, name)
		if err != nil {
			t.Errorf("%s: %v", gvk, err)
			continue
		}
		if definitions[name] == nil {
			t.Errorf("%s: no definition named %s", gvk, name)
			continue
		}
		if _, ok := definitions[name].Extensions["x-kubernetes-group-version-kind"]; !ok {
			t.Errorf("%s: its definition does not name the kind", gvk)
		}
	}
}
