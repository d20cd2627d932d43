// Package managers holds what the managers (of controller-runtime) of all of Trellis' programs have in common, and what
// programs wait for before they have one.
package managers

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// How long a program goes on without its API server before it ends itself: a server that is overloaded, or whose etcd
// is, comes back, and to begin anew costs it more than to wait. Where another replica stands by, it takes over after
// LeaseDuration at the latest.
const (
	// LeaseDuration is how long others leave the lease of a leader that is silent alone.
	LeaseDuration = 60 * time.Second
	// RenewDeadline is how long a leader tries to renew its lease until it ends. It is shorter than LeaseDuration by
	// more than clocks differ.
	RenewDeadline = 45 * time.Second
	// RetryPeriod lies between two tries.
	RetryPeriod = 5 * time.Second
	// CacheSyncTimeout is how long controllers wait for the first list of what they watch until the program ends.
	CacheSyncTimeout = 15 * time.Minute
)

// ElectionFlags are those of Kubernetes' programs, without dashes, that have one of several replicas work, by leases as
// above.
func ElectionFlags() map[string]string {
	return map[string]string{
		"leader-elect":                "true",
		"leader-elect-lease-duration": LeaseDuration.String(),
		"leader-elect-renew-deadline": RenewDeadline.String(),
		"leader-elect-retry-period":   RetryPeriod.String(),
	}
}

// Patient gives a manager the leases and timeouts above. A leader that is told to end gives its lease away at once, so
// its process must end with the manager: controllers have the queue of client-go, as the priority queue of
// controller-runtime v0.24 may wait for ever, when it is shut down, for a worker that has left
// (kubernetes-sigs/controller-runtime#3538).
func Patient(options manager.Options) manager.Options {
	options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = new(LeaseDuration), new(RenewDeadline),
		new(RetryPeriod)
	options.LeaderElectionReleaseOnCancel = true
	options.Controller.CacheSyncTimeout = CacheSyncTimeout
	options.Controller.UsePriorityQueue = new(false)
	return options
}
