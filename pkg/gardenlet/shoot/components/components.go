// Package components lists the parts of a shoot that gardenlet deploys, and makes them of the values that the Plan
// has decided. docs/adding-a-component.md is about adding to the lists.
package components

import (
	"slices"

	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/apiserverproxy"
	"github.com/trellis-garden/trellis/pkg/component/clusterautoscaler"
	"github.com/trellis-garden/trellis/pkg/component/coredns"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-garden/trellis/pkg/component/kubeproxy"
	"github.com/trellis-garden/trellis/pkg/component/kubescheduler"
	"github.com/trellis-garden/trellis/pkg/component/metricsserver"
	"github.com/trellis-garden/trellis/pkg/component/shootsystem"
	"github.com/trellis-garden/trellis/pkg/component/vpnseedserver"
	"github.com/trellis-garden/trellis/pkg/component/vpnshoot"
)

// Stage says what a component of the control plane waits for before it is deployed. When a shoot falls asleep, API
// servers stop after all others, and stores at last; they wake up the other way round.
type Stage int

const (
	// Controllers wait for kube-apiserver, and nothing else.
	Controllers Stage = iota
	// Stores wait for secrets only. They are StatefulSets, whose data stay.
	Stores
	// APIServers wait until the stores are deployed, to which they write. The flow has tasks of its own for them.
	APIServers
	// Tunnels wait for secrets, and until it is known which networks the nodes have.
	Tunnels
	// Autoscalers wait for the workers. They make and remove machines, so they stop while others do that, and a shoot
	// that falls asleep gets none.
	Autoscalers
)

// Component is one part of a shoot. The flows, the images and values of the Plan, hibernation, deletion and the
// conditions of the shoot derive from the two lists below.
type Component struct {
	// Name is that of its Deployment or StatefulSet in the control plane, or of its ManagedResource.
	Name string
	// Images are the names in the image vector that it runs.
	Images []string
	// Authorities are the certificate authorities that it needs, also those that others need.
	Authorities []string
	// LeftOut says which shoots do without it; nil: none does.
	LeftOut func(*gardencorev1beta1.ShootSpec) bool
	// Recipe makes it; empty if an extension of the seed deploys it.
	Recipe Recipe
	// PriorityClass of its pods in the seed; empty if it has none there, or an extension deploys it.
	PriorityClass string

	// Stage of a component of the control plane.
	Stage Stage
	// After is the component of its stage that has to be ready before it is deployed: of two that stand in for each
	// other, one at a time is replaced. Empty if it waits for none.
	After string
	// JudgesNodes says that it takes nodes whose kubelets are silent for broken: the seed's watchdog stops it while
	// they only cannot be heard, and starts what it has stopped in the order of the list.
	JudgesNodes bool
	// Empties says that a shoot that sleeps cannot be emptied, to be deleted, without it. Stores and API servers are
	// needed anyway.
	Empties bool
}

// ControlPlane are what the seed runs for a shoot; it is deleted from the end to the beginning.
var ControlPlane = []Component{
	{
		Name: etcdcomponent.Name(etcdcomponent.Main), Images: []string{"etcd-steward"}, Stage: Stores,
		PriorityClass: component.PriorityControlPlane500,
		Recipe:        etcdOf(etcdcomponent.Main),
	},
	{
		Name: etcdcomponent.Name(etcdcomponent.Events), Images: []string{"etcd-steward"}, Stage: Stores,
		PriorityClass: component.PriorityControlPlane500,
		Recipe:        etcdOf(etcdcomponent.Events),
	},
	{
		Name: kubeapiserver.Name, Images: []string{"kube-apiserver", "vpn"}, Stage: APIServers,
		Authorities: kubeapiserver.Authorities(), PriorityClass: component.PriorityControlPlane500,
		Recipe: with(kubeapiserver.Decide, kubeAPIServer),
	},
	{
		Name: kubecontrollermanager.Name, Images: []string{"kube-controller-manager"}, Empties: true,
		JudgesNodes: true, PriorityClass: component.PriorityControlPlane300,
		Recipe: inSeed(kubecontrollermanager.Decide, kubecontrollermanager.New),
	},
	{
		Name: kubescheduler.Name, Images: []string{"kube-scheduler"}, LeftOut: isWorkerless,
		PriorityClass: component.PriorityControlPlane300, Recipe: inSeed(kubescheduler.Decide, kubescheduler.New),
	},
	{
		Name: vpnseedserver.Name, Images: []string{"vpn"}, LeftOut: isWorkerless, Stage: Tunnels,
		Authorities: []string{component.CAVPN}, PriorityClass: component.PriorityControlPlane300,
		Recipe: vpnSeedServer(vpnseedserver.First),
	},
	{
		Name: vpnseedserver.Second.Named(vpnseedserver.Name), Images: []string{"vpn"}, LeftOut: hasOnePath,
		Stage: Tunnels, After: vpnseedserver.Name, PriorityClass: component.PriorityControlPlane300,
		Recipe: vpnSeedServer(vpnseedserver.Second),
	},
	{Name: "machine-controller-manager", LeftOut: isWorkerless, JudgesNodes: true},
	{
		Name: clusterautoscaler.Name, Images: []string{"cluster-autoscaler"}, LeftOut: isFixed, Stage: Autoscalers,
		JudgesNodes: true, PriorityClass: component.PriorityControlPlane300,
		Recipe: with(clusterautoscaler.Decide, clusterAutoscaler),
	},
}

// System are what resource-manager keeps in a shoot.
var System = []Component{
	{Name: "shoot-core-system", Recipe: inShoot(shootsystem.Decide, sure(shootsystem.Objects))},
	{
		Name: VPNShoot, Images: []string{"vpn"}, LeftOut: isWorkerless,
		Recipe: withKeys(vpnshoot.Decide, sure(vpnshoot.Objects)),
	},
	{
		Name: "shoot-core-kube-proxy", Images: []string{"kube-proxy"}, LeftOut: needsNoKubeProxy,
		Recipe: withKeys(kubeproxy.Decide, kubeproxy.Objects),
	},
	{
		Name: CoreDNS, Images: []string{"coredns"}, LeftOut: isWorkerless,
		Recipe: inShoot(coredns.Decide, sure(coredns.Objects)),
	},
	{
		Name: MetricsServer, Images: []string{"metrics-server"}, LeftOut: isWorkerless,
		Authorities: []string{metricsserver.Authority},
		Recipe:      withKeys(metricsserver.Decide, sure(metricsserver.Objects)),
	},
	{
		Name: "shoot-core-apiserver-proxy", Images: []string{"vpn"}, LeftOut: isWorkerless,
		Recipe: inShoot(apiserverproxy.Decide, sure(apiserverproxy.Objects)),
	},
}

// ManagedResources that others name.
const (
	// VPNShoot is the shoot's end of the tunnel.
	VPNShoot = "shoot-core-vpn-shoot"
	// CoreDNS is the cluster's DNS.
	CoreDNS = "shoot-core-coredns"
	// MetricsServer is deleted before the namespaces of a shoot are.
	MetricsServer = "shoot-core-metrics-server"
)

// imagesOfMachines and authoritiesOfMachines are what machines need beside what components do.
var (
	imagesOfMachines      = []string{"pause"}
	authoritiesOfMachines = []string{component.CAKubelet}
)

// Images are the names of the images that shoots need, sorted.
func Images() []string {
	images := slices.Clone(imagesOfMachines)
	for _, c := range slices.Concat(ControlPlane, System) {
		images = append(images, c.Images...)
	}
	slices.Sort(images)
	return slices.Compact(images)
}

// Authorities are the names of the certificate authorities that a shoot needs, sorted.
func Authorities(shoot *gardencorev1beta1.ShootSpec) []string {
	var authorities []string
	if !isWorkerless(shoot) {
		authorities = slices.Clone(authoritiesOfMachines)
	}
	for _, c := range slices.Concat(ControlPlane, System) {
		if c.IsPartOf(shoot) {
			authorities = append(authorities, c.Authorities...)
		}
	}
	slices.Sort(authorities)
	return slices.Compact(authorities)
}

// Of are the components of a stage.
func Of(stage Stage) []Component {
	return slices.DeleteFunc(slices.Clone(ControlPlane), func(c Component) bool { return c.Stage != stage })
}

// Decide makes the values of the components that a shoot has.
func Decide(f component.Facts, shoot *gardencorev1beta1.ShootSpec) Values {
	values := Values{}
	for _, c := range slices.Concat(ControlPlane, System) {
		if c.Recipe.Decide != nil && c.IsPartOf(shoot) {
			f.PriorityClass = c.PriorityClass
			values[c.Name] = c.Recipe.Decide(f)
		}
	}
	return values
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

func isHighlyAvailable(shoot *gardencorev1beta1.ShootSpec) bool {
	return shoot.ControlPlane != nil && shoot.ControlPlane.HighAvailability != nil
}

func hasOnePath(shoot *gardencorev1beta1.ShootSpec) bool {
	return isWorkerless(shoot) || !isHighlyAvailable(shoot)
}

// isFixed: no pool has room between its minimum and its maximum.
func isFixed(shoot *gardencorev1beta1.ShootSpec) bool {
	return !slices.ContainsFunc(shoot.Provider.Workers,
		func(w gardencorev1beta1.Worker) bool { return w.Maximum > w.Minimum })
}

func needsNoKubeProxy(shoot *gardencorev1beta1.ShootSpec) bool {
	user := shoot.Kubernetes.KubeProxy
	return isWorkerless(shoot) || user != nil && !ptr.Deref(user.Enabled, true)
}

// etcdOf a role, which is its name as well.
func etcdOf(role etcdcomponent.Role) Recipe {
	decide := func(f component.Facts) etcdcomponent.Values {
		values := etcdcomponent.Decide(role)(f)
		values.Reloads = true
		return values
	}
	return with(decide, func(b *Builder, values etcdcomponent.Values) component.Component {
		values.Role = role
		return etcdcomponent.NewReloading(b.Seed, b.Namespace, b.Secrets, values, b.AskEtcd)
	})
}

func kubeAPIServer(b *Builder, _ kubeapiserver.Values) component.Component { return b.KubeAPIServer() }

// vpnSeedServer of a path, which is known where nothing was decided as well.
func vpnSeedServer(path vpnseedserver.Path) Recipe {
	return with(vpnseedserver.Decide(path), func(b *Builder, values vpnseedserver.Values) component.Component {
		values.Path = path
		if b.NodeNetworks != nil {
			values.NodeNetworks = b.NodeNetworks()
		}
		return vpnseedserver.New(b.Seed, b.Namespace, b.Secrets, values)
	})
}

func clusterAutoscaler(b *Builder, values clusterautoscaler.Values) component.Component {
	return clusterautoscaler.New(b.Seed, b.Namespace, b.Secrets, values, b.Machines)
}
