package component

import (
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Priority classes that every cluster has.
const (
	PriorityNodeCritical    = "system-node-critical"
	PriorityClusterCritical = "system-cluster-critical"
)

// Priority classes of a seed; gardenlet makes them. Names and values are Gardener's, since charts of extensions name
// them. A control plane has those up to 500, what serves all of them has those above.
const (
	PrioritySeedSystemCritical = "gardener-system-critical"
	PrioritySeedSystem900      = "gardener-system-900"
	PrioritySeedSystem800      = "gardener-system-800"
	PrioritySeedSystem700      = "gardener-system-700"
	PrioritySeedSystem600      = "gardener-system-600"
	PriorityControlPlane500    = "gardener-system-500"
	PriorityControlPlane400    = "gardener-system-400"
	PriorityControlPlane300    = "gardener-system-300"
	PriorityControlPlane200    = "gardener-system-200"
	PriorityControlPlane100    = "gardener-system-100"
)

// Priority classes of the cluster that runs the garden, above those of a seed that it may be as well.
const (
	PriorityGardenSystemCritical = "gardener-garden-system-critical"
	PriorityGardenSystem500      = "gardener-garden-system-500"
	PriorityGardenSystem400      = "gardener-garden-system-400"
	PriorityGardenSystem300      = "gardener-garden-system-300"
	PriorityGardenSystem200      = "gardener-garden-system-200"
	PriorityGardenSystem100      = "gardener-garden-system-100"
)

// Priority classes of a shoot, for what runs there beside the two that every cluster has.
const (
	PriorityShootSystem900 = "gardener-shoot-system-900"
	PriorityShootSystem800 = "gardener-shoot-system-800"
	PriorityShootSystem700 = "gardener-shoot-system-700"
	PriorityShootSystem600 = "gardener-shoot-system-600"
)

// SeedPriorityClasses returns those of a seed. No pod with one of them can start before they are there.
func SeedPriorityClasses() []client.Object {
	return []client.Object{
		priorityClass(PrioritySeedSystemCritical, 999998950, "What a seed cannot do without"),
		priorityClass(PrioritySeedSystem900, 999998900, "Extensions, and what all control planes of a seed go through"),
		priorityClass(PrioritySeedSystem800, 999998800, "Caretakers of all control planes of a seed"),
		priorityClass(PrioritySeedSystem700, 999998700, "Autoscaling of all control planes of a seed"),
		priorityClass(PrioritySeedSystem600, 999998600, "Observability of a seed"),
		priorityClass(PriorityControlPlane500, 999998500, "Etcds and kube-apiservers of shoots"),
		priorityClass(PriorityControlPlane400, 999998400, "What delivers to shoots"),
		priorityClass(PriorityControlPlane300, 999998300, "Controllers and tunnels of shoots"),
		priorityClass(PriorityControlPlane200, 999998200, "Further parts of control planes of shoots"),
		priorityClass(PriorityControlPlane100, 999998100, "Observability of shoots"),
	}
}

// GardenPriorityClasses returns those of the cluster that runs the garden.
func GardenPriorityClasses() []client.Object {
	return []client.Object{
		priorityClass(PriorityGardenSystemCritical, 999999550, "What a garden cannot do without"),
		priorityClass(PriorityGardenSystem500, 999999500, "Etcds and API servers of the garden"),
		priorityClass(PriorityGardenSystem400, 999999400, "Admission to the garden"),
		priorityClass(PriorityGardenSystem300, 999999300, "Controllers of the garden's API"),
		priorityClass(PriorityGardenSystem200, 999999200, "Controllers and extensions of the garden"),
		priorityClass(PriorityGardenSystem100, 999999100, "Observability of the garden"),
	}
}

// ShootPriorityClasses returns those of a shoot. They are above those of a seed that it may be.
func ShootPriorityClasses() []client.Object {
	return []client.Object{
		priorityClass(PriorityShootSystem900, 999999900, "Agents of nodes"),
		priorityClass(PriorityShootSystem800, 999999800, "Scaling of the network's parts"),
		priorityClass(PriorityShootSystem700, 999999700, "Observability of the cluster"),
		priorityClass(PriorityShootSystem600, 999999600, "Addons"),
	}
}

// priorityClass returns a class whose pods take the place of those below: preemptionPolicy is the API's default, as
// that of the published ones is.
func priorityClass(name string, value int32, description string) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, Description: description,
	}
}
