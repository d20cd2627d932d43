// Package fleetscheme has the scheme of fleets: of the federation's controllers and agents, and of what shows fleets to
// people. It is a package of its own so that what uses package apis, for gardens and seeds, is not made of the kinds of
// fleets.
package fleetscheme

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	appsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/apps/v1alpha1"
	autoscalingv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/autoscaling/v1alpha1"
	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

var scheme = sync.OnceValue(func() *runtime.Scheme {
	result := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiregistrationv1.AddToScheme, policyv1alpha1.AddToScheme,
		clusterv1alpha1.AddToScheme, workv1alpha1.AddToScheme, workv1alpha2.AddToScheme, appsv1alpha1.AddToScheme,
		autoscalingv1alpha1.AddToScheme, configv1alpha1.AddToScheme, fleetv1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(result))
	}
	return result
})

// Scheme knows the kinds of fleets, Kubernetes' own, and APIServices. It is built once; callers must not add to it.
func Scheme() *runtime.Scheme { return scheme() }
