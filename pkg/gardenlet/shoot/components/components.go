// Package components lists the parts of a shoot that gardenlet deploys, and makes them of the values that the Plan
// has decided. docs/adding-a-component.md is about adding to the lists.
package components

import (
	"context"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/clusterautoscaler"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-garden/trellis/pkg/component/kubescheduler"
	"github.com/trellis-garden/trellis/pkg/component/vpnseedserver"
)

// Component is one part of a shoot. The flows, the images of the Plan, the deletion and the conditions of the shoot
// derive from the two lists below.
type Component struct {
	// Name is that of its Deployment or StatefulSet in the control plane, or of its ManagedResource.
	Name string
	// Images are the names in the image vector that it runs.
	Images []string
	// LeftOut says which shoots do without it; nil: none does.
	LeftOut func(*gardencorev1beta1.ShootSpec) bool

	// Build makes a component of the control plane; nil if an extension of the seed deploys it.
	Build func(*Builder) component.Component
	// ETCD says that it is a StatefulSet, which is stopped and deleted after all others.
	ETCD bool
	// Companion says that it needs kube-apiserver and nothing else. The flow has tasks of their own for the others.
	Companion bool

	// Objects makes those of a component that runs in the shoot.
	Objects func(*Builder, context.Context) ([]client.Object, error)
}

// ControlPlane are what the seed runs for a shoot, in the order in which they start.
var ControlPlane = []Component{
	{
		Name: etcdcomponent.Name(etcdcomponent.Main), Images: []string{"etcd-steward"},
		Build: etcdOf(etcdcomponent.Main), ETCD: true,
	},
	{
		Name: etcdcomponent.Name(etcdcomponent.Events), Images: []string{"etcd-steward"},
		Build: etcdOf(etcdcomponent.Events), ETCD: true,
	},
	{
		Name: kubeapiserver.Name, Images: []string{"kube-apiserver", "vpn"},
		Build: func(b *Builder) component.Component { return b.KubeAPIServer() },
	},
	{
		Name: kubecontrollermanager.Name, Images: []string{"kube-controller-manager"},
		Build: (*Builder).kubeControllerManager, Companion: true,
	},
	{
		Name: kubescheduler.Name, Images: []string{"kube-scheduler"}, LeftOut: isWorkerless,
		Build: (*Builder).kubeScheduler, Companion: true,
	},
	{Name: vpnseedserver.Name, Images: []string{"vpn"}, LeftOut: isWorkerless, Build: (*Builder).VPNSeedServer},
	{Name: "machine-controller-manager", LeftOut: isWorkerless},
	{
		Name: clusterautoscaler.Name, Images: []string{"cluster-autoscaler"}, LeftOut: isFixed,
		Build: (*Builder).ClusterAutoscaler,
	},
}

// System are what resource-manager keeps in a shoot.
var System = []Component{
	{Name: "shoot-core-system", Objects: (*Builder).systemObjects},
	{Name: "shoot-core-vpn-shoot", Images: []string{"vpn"}, LeftOut: isWorkerless, Objects: (*Builder).vpnShootObjects},
	{
		Name: "shoot-core-kube-proxy", Images: []string{"kube-proxy"}, LeftOut: needsNoKubeProxy,
		Objects: (*Builder).kubeProxyObjects,
	},
	{
		Name: "shoot-core-coredns", Images: []string{"coredns"}, LeftOut: isWorkerless,
		Objects: (*Builder).coreDNSObjects,
	},
	{
		Name: MetricsServer, Images: []string{"metrics-server"}, LeftOut: isWorkerless,
		Objects: (*Builder).metricsServerObjects,
	},
	{
		Name: "shoot-core-apiserver-proxy", Images: []string{"vpn"}, LeftOut: isWorkerless,
		Objects: (*Builder).apiServerProxyObjects,
	},
}

// MetricsServer is the ManagedResource that is deleted before the namespaces of a shoot are.
const MetricsServer = "shoot-core-metrics-server"

// imagesOfMachines are what machines need beside the images of components.
var imagesOfMachines = []string{"pause"}

// Images are the names of the images that shoots need, sorted.
func Images() []string {
	images := slices.Clone(imagesOfMachines)
	for _, c := range slices.Concat(ControlPlane, System) {
		images = append(images, c.Images...)
	}
	slices.Sort(images)
	return slices.Compact(images)
}

// IsPartOf says whether a shoot has the component.
func (c Component) IsPartOf(shoot *gardencorev1beta1.ShootSpec) bool {
	return c.LeftOut == nil || !c.LeftOut(shoot)
}

// Names are those of a list's components that a shoot has.
func Names(list []Component, shoot *gardencorev1beta1.ShootSpec) []string {
	var names []string
	for _, c := range list {
		if c.IsPartOf(shoot) {
			names = append(names, c.Name)
		}
	}
	return names
}

func isWorkerless(shoot *gardencorev1beta1.ShootSpec) bool { return len(shoot.Provider.Workers) == 0 }

// isFixed: no pool has room between its minimum and its maximum.
func isFixed(shoot *gardencorev1beta1.ShootSpec) bool {
	return !slices.ContainsFunc(shoot.Provider.Workers,
		func(w gardencorev1beta1.Worker) bool { return w.Maximum > w.Minimum })
}

func needsNoKubeProxy(shoot *gardencorev1beta1.ShootSpec) bool {
	user := shoot.Kubernetes.KubeProxy
	return isWorkerless(shoot) || user != nil && !ptr.Deref(user.Enabled, true)
}

func etcdOf(role etcdcomponent.Role) func(*Builder) component.Component {
	return func(b *Builder) component.Component { return b.ETCD(role) }
}
