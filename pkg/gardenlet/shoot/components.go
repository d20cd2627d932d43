package shoot

import (
	"context"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/clusterautoscaler"
	"github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-garden/trellis/pkg/component/kubescheduler"
	"github.com/trellis-garden/trellis/pkg/component/vpnseedserver"
)

// shootComponent is one part of a shoot. The flows, the images of the Plan, the deletion and the conditions of the shoot derive
// from the two lists below; docs/adding-a-component.md is about adding to them.
type shootComponent struct {
	// name is that of its Deployment or StatefulSet in the control plane, or of its ManagedResource.
	name string
	// images are the names in the image vector that it runs.
	images []string
	// leftOut says which shoots do without it; nil: none does.
	leftOut func(*gardencorev1beta1.ShootSpec) bool

	// build makes a component of the control plane from the Plan; nil if an extension of the seed deploys it.
	build func(*Operation) component.Component
	// etcd says that it is a StatefulSet, which is stopped and deleted after all others.
	etcd bool
	// companion says that it needs kube-apiserver and nothing else. The flow has tasks of their own for the others.
	companion bool

	// objects makes those of a component that runs in the shoot.
	objects func(*Operation, context.Context) ([]client.Object, error)
}

// controlPlaneComponents are what the seed runs for a shoot, in the order in which they start.
var controlPlaneComponents = []shootComponent{
	{name: etcd.Name(etcd.Main), images: []string{"etcd-steward"}, build: etcdOf(etcd.Main), etcd: true},
	{name: etcd.Name(etcd.Events), images: []string{"etcd-steward"}, build: etcdOf(etcd.Events), etcd: true},
	{name: kubeapiserver.Name, images: []string{"kube-apiserver", "vpn"}, build: func(o *Operation) component.Component { return o.kubeAPIServer() }},
	{name: kubecontrollermanager.Name, images: []string{"kube-controller-manager"}, build: (*Operation).kubeControllerManager, companion: true},
	{name: kubescheduler.Name, images: []string{"kube-scheduler"}, leftOut: isWorkerless, build: (*Operation).kubeScheduler, companion: true},
	{name: vpnseedserver.Name, images: []string{"vpn"}, leftOut: isWorkerless, build: (*Operation).vpnSeedServer},
	{name: "machine-controller-manager", leftOut: isWorkerless},
	{name: clusterautoscaler.Name, images: []string{"cluster-autoscaler"}, leftOut: isFixed, build: (*Operation).clusterAutoscaler},
}

// systemComponents are what resource-manager keeps in a shoot.
var systemComponents = []shootComponent{
	{name: "shoot-core-system", objects: (*Operation).systemObjects},
	{name: "shoot-core-vpn-shoot", images: []string{"vpn"}, leftOut: isWorkerless, objects: (*Operation).vpnShootObjects},
	{name: "shoot-core-kube-proxy", images: []string{"kube-proxy"}, leftOut: needsNoKubeProxy, objects: (*Operation).kubeProxyObjects},
	{name: "shoot-core-coredns", images: []string{"coredns"}, leftOut: isWorkerless, objects: (*Operation).coreDNSObjects},
	{name: resourceMetricsServer, images: []string{"metrics-server"}, leftOut: isWorkerless, objects: (*Operation).metricsServerObjects},
	{name: "shoot-core-apiserver-proxy", images: []string{"vpn"}, leftOut: isWorkerless, objects: (*Operation).apiServerProxyObjects},
}

// resourceMetricsServer is deleted before the namespaces of a shoot are.
const resourceMetricsServer = "shoot-core-metrics-server"

// imagesOfMachines are what machines need beside the images of components.
var imagesOfMachines = []string{"pause"}

// allImages are the images that the Plan resolves.
func allImages() []string {
	images := slices.Clone(imagesOfMachines)
	for _, c := range slices.Concat(controlPlaneComponents, systemComponents) {
		images = append(images, c.images...)
	}
	slices.Sort(images)
	return slices.Compact(images)
}

// isPartOf says whether a shoot has the component.
func (c shootComponent) isPartOf(shoot *gardencorev1beta1.ShootSpec) bool {
	return c.leftOut == nil || !c.leftOut(shoot)
}

// componentsOf are the names of a list's components that a shoot has.
func componentsOf(list []shootComponent, shoot *gardencorev1beta1.ShootSpec) []string {
	var names []string
	for _, c := range list {
		if c.isPartOf(shoot) {
			names = append(names, c.name)
		}
	}
	return names
}

func isWorkerless(shoot *gardencorev1beta1.ShootSpec) bool { return len(shoot.Provider.Workers) == 0 }

// isFixed: no pool has room between its minimum and its maximum.
func isFixed(shoot *gardencorev1beta1.ShootSpec) bool {
	return !slices.ContainsFunc(shoot.Provider.Workers, func(w gardencorev1beta1.Worker) bool { return w.Maximum > w.Minimum })
}

func needsNoKubeProxy(shoot *gardencorev1beta1.ShootSpec) bool {
	user := shoot.Kubernetes.KubeProxy
	return isWorkerless(shoot) || user != nil && !ptr.Deref(user.Enabled, true)
}

func etcdOf(role etcd.Role) func(*Operation) component.Component {
	return func(o *Operation) component.Component { return o.etcd(role) }
}
