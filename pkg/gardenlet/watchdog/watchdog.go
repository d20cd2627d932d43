// Package watchdog keeps an outage between a seed and the nodes of its shoots from being taken for broken nodes, and
// shortens what follows an outage within the seed.
//
// The Prober looks at shoots whose API server answers in the seed. When most of their nodes do not renew their Leases,
// it stops what takes silent nodes for broken ones: machine-controller-manager, which would replace their machines,
// cluster-autoscaler, and kube-controller-manager, which would have their pods evicted. When the nodes are heard again,
// it starts them, kube-controller-manager first. What it stops it notes at the Deployment (component.Hold), so that a
// gardenlet that was killed goes on with it, and who deploys it lets it be. Only the Prober begins and ends that, or
// who scales the Deployment for another reason (component.Scale): a shoot that is deleted or put to sleep gets its
// controllers back at once, as they have to remove the machines.
//
// Nodes count if a Machine of the seed stands for them: neither Nodes nor Leases that somebody makes in a shoot add to
// them. A Lease is old when three quarters of kube-controller-manager's grace period have passed since its renewal, by
// the seed's clock. Where the clock of a node is so wrong that its time says nothing, its Lease is as old as the last
// change that was seen. No Lease counts as expired before this process has been able to look at it for that time, so
// nodes have the time to come back to an API server that was away itself. Until then nothing is stopped, and nothing
// started.
//
// That is early enough. kube-controller-manager takes its first look at a node for a sign of life, so one that has just
// started marks no node before its whole grace period is over. One that went on while the API server was away marks
// nodes within seconds when that is back, but where all nodes are silent it evicts nothing, takes its taints off again,
// and when the first node is heard gives all of them their time anew; and pods that say nothing else tolerate the taint
// for five minutes. machine-controller-manager freezes itself while an API server does not answer, and gives machines
// that it holds for Unknown their time anew; but not when it was itself away, so it is started half a minute after
// kube-controller-manager.
//
// The Weeder deletes pods that are in CrashLoopBackOff because of what has just come back, instead of letting them wait
// for up to five minutes.
package watchdog

import (
	"context"
	"fmt"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Cache has of a seed what the watchdog reads all the time: Machines, of which it keeps little, and the EndpointSlices
// of the services that others depend on.
func Cache() (cache.Options, error) {
	services, err := labels.NewRequirement(discoveryv1.LabelServiceName, selection.In, dependencies())
	if err != nil {
		return cache.Options{}, fmt.Errorf("selecting EndpointSlices: %w", err)
	}
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&machinev1alpha1.Machine{}:   {Transform: slim},
			&discoveryv1.EndpointSlice{}: {Label: labels.NewSelector().Add(*services)},
		},
	}, nil
}

// slim leaves of a Machine what candidates reads.
func slim(object any) (any, error) {
	machine, ok := object.(*machinev1alpha1.Machine)
	if !ok {
		return object, nil
	}
	machine.ManagedFields, machine.Annotations = nil, nil
	machine.Spec = machinev1alpha1.MachineSpec{MachineConfiguration: machine.Spec.MachineConfiguration}
	machine.Status = machinev1alpha1.MachineStatus{
		Conditions: machine.Status.Conditions, CurrentStatus: machine.Status.CurrentStatus,
	}
	return machine, nil
}

// settingsOf reads the settings of the watchdog of a seed; a part that is left out is on.
func settingsOf(ctx context.Context, garden client.Reader, name string) (prober, weeder bool, err error) {
	seed := &gardencorev1beta1.Seed{}
	if err := garden.Get(ctx, client.ObjectKey{Name: name}, seed); err != nil {
		return false, false, fmt.Errorf("reading the settings of Seed %s: %w", name, err)
	}
	gardencorev1beta1.SetDefaultsSeed(seed)
	settings := seed.Spec.Settings.DependencyWatchdog
	return settings.Prober.Enabled, settings.Weeder.Enabled, nil
}
