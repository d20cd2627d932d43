package managers

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

func TestLeasesOutliveAnOverloadedMachine(t *testing.T) {
	options := Patient(manager.Options{LeaderElectionID: "own", LeaseDuration: new(time.Second)})
	if *options.LeaseDuration != time.Minute || *options.RenewDeadline != 45*time.Second ||
		*options.RetryPeriod != 5*time.Second {
		t.Errorf("leases of %s are renewed within %s, every %s", options.LeaseDuration, options.RenewDeadline,
			options.RetryPeriod)
	}
	if !options.LeaderElectionReleaseOnCancel {
		t.Error("a leader that is told to end keeps its lease, and the next waits for it")
	}
	if options.Controller.CacheSyncTimeout != CacheSyncTimeout {
		t.Errorf("first lists are waited for %s", options.Controller.CacheSyncTimeout)
	}
	if options.LeaderElectionID != "own" {
		t.Error("what the program sets itself is lost")
	}
}
