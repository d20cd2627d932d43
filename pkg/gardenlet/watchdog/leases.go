package watchdog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// pageSize is how many Leases are read at a time. A shoot may have two pages of Leases that belong to no machine,
	// and leasesPerNode for each machine; more are not read.
	pageSize      = 500
	leasesPerNode = 5
)

// badConditions are those of a node that is broken for other reasons than silence, where a Machine names no others.
var badConditions = []string{"ReadonlyFilesystem", "KernelDeadlock", "DiskPressure"}

// candidates are the names of the nodes that count: those of machines that are not on their way out, and not broken for
// other reasons than silence. Of a silent node kube-controller-manager says that all its conditions are Unknown, so
// only True is bad.
func candidates(machines []machinev1alpha1.Machine) map[string]bool {
	nodes := map[string]bool{}
	for i := range machines {
		node := machines[i].Labels[machinev1alpha1.NodeLabelKey]
		if node != "" && stays(&machines[i]) && !hasBadCondition(&machines[i]) {
			nodes[node] = true
		}
	}
	return nodes
}

func stays(machine *machinev1alpha1.Machine) bool {
	switch machine.Status.CurrentStatus.Phase {
	case machinev1alpha1.MachineFailed, machinev1alpha1.MachineTerminating, machinev1alpha1.MachineInPlaceUpdating:
		return false
	}
	return machine.DeletionTimestamp == nil
}

func hasBadCondition(machine *machinev1alpha1.Machine) bool {
	bad := badConditions
	if c := machine.Spec.MachineConfiguration; c != nil && c.NodeConditions != nil {
		bad = strings.Split(*c.NodeConditions, ",")
	}
	return slices.ContainsFunc(machine.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Status == corev1.ConditionTrue && slices.Contains(bad, string(c.Type))
	})
}

// Lease is when a node was last heard, as it says itself.
type Lease struct {
	Node    string
	Renewed time.Time
}

// readLeases reads those of the given nodes. One without a time tells nothing, as if it were not there.
func readLeases(ctx context.Context, shoot kubernetes.Interface, nodes map[string]bool) ([]Lease, error) {
	var leases []Lease
	most := 2*pageSize + leasesPerNode*len(nodes)
	options := metav1.ListOptions{Limit: pageSize}
	for read, found := 0, 0; ; {
		list, err := shoot.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing the Leases of nodes: %w", err)
		}
		for i := range list.Items {
			lease := &list.Items[i]
			if !nodes[lease.Name] {
				continue
			}
			if found++; lease.Spec.RenewTime != nil {
				leases = append(leases, Lease{lease.Name, lease.Spec.RenewTime.Time})
			}
		}
		if options.Continue = list.Continue; options.Continue == "" || found >= len(nodes) {
			return leases, nil
		}
		if read += len(list.Items); read >= most {
			return nil, fmt.Errorf("namespace %s of the shoot has more than %d Leases, but the shoot has %d nodes; "+
				"delete those of no node", corev1.NamespaceNodeLease, read, len(nodes))
		}
	}
}

// Sighting is what is known of a Lease.
type Sighting struct {
	// Renewed is the time in it.
	Renewed time.Time
	// Fresh is until when it counts as renewed, Open until when it does not count as expired.
	Fresh, Open time.Time
}

// Sightings are those of the Leases of a shoot, by nodes.
type Sightings map[string]Sighting

// Look adds what the Leases of nodes say now to what was known, and judges them. A Lease is fresh for limit after it
// was renewed. A time that is further away from now than that is none that one could go by: then the sight of its
// change counts as the renewal.
func Look(known Sightings, leases []Lease, now time.Time, limit time.Duration) (Sightings, Tally) {
	sightings, tally := Sightings{}, Tally{}
	for _, lease := range leases {
		seen, before := known[lease.Node]
		if !before {
			seen.Open = now.Add(limit)
		}
		if !before || !seen.Renewed.Equal(lease.Renewed) {
			seen.Renewed, seen.Fresh = lease.Renewed, freshUntil(lease.Renewed, now, limit, before)
		}
		sightings[lease.Node] = seen
		switch {
		case now.Before(seen.Fresh):
			tally.Fresh++
		case now.Before(seen.Open):
			tally.Open++
		default:
			tally.Expired++
		}
	}
	return sightings, tally
}

// freshUntil is reckoned from now, so that it does not move when the seed's clock is set.
func freshUntil(renewed, now time.Time, limit time.Duration, changed bool) time.Time {
	age := max(now.Sub(renewed), 0)
	switch {
	case now.Sub(renewed).Abs() < limit:
		return now.Add(limit - age)
	case changed:
		return now.Add(limit)
	}
	return now
}
