// Package apis offers the schemes with which clients and servers of gardens and seeds decode objects. The kinds lie in
// a folder per group and version.
package apis

import (
	"sync"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

var (
	gardenScheme = sync.OnceValue(func() *runtime.Scheme {
		return newScheme(append([]func(*runtime.Scheme) error{
			clientgoscheme.AddToScheme, apiregistrationv1.AddToScheme,
		}, gardenGroups...)...)
	})
	seedScheme = sync.OnceValue(func() *runtime.Scheme {
		return newScheme(
			clientgoscheme.AddToScheme,
			apiextensionsv1.AddToScheme,
			extensionsv1alpha1.AddToScheme,
			resourcesv1alpha1.AddToScheme,
			gardencorev1beta1.AddToScheme,
			machinev1alpha1.AddToScheme,
			gatewayv1.Install,
		)
	})
)

// GardenScheme returns the scheme for objects in the garden: those of Kubernetes, APIServices, and the groups core,
// security, seedmanagement, operations and authentication. It is built once; callers must not add to it.
func GardenScheme() *runtime.Scheme { return gardenScheme() }

// SeedScheme returns the scheme for objects in seeds: those of Kubernetes, CustomResourceDefinitions, the groups
// extensions, resources and machine, routes of the Gateway API, and core for what a Cluster holds. It is built once;
// callers must not add to it.
func SeedScheme() *runtime.Scheme { return seedScheme() }

// newScheme panics when a group cannot be added, which no input can cause.
func newScheme(adders ...func(*runtime.Scheme) error) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range adders {
		utilruntime.Must(add(scheme))
	}
	return scheme
}
