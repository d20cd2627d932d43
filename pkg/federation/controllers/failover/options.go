package failover

import (
	"fmt"
	"time"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/failover"
)

// Options of failure handling in a fleet.
type Options struct {
	// ClusterFailoverAfter is how long a member may be not ready or unreachable before it gets a NoExecute taint by
	// itself. 0 leaves such taints to people and ClusterTaintPolicies.
	ClusterFailoverAfter time.Duration
	// EvictionRate is how many copies per second are evicted because of taints. 0 means one in 30 minutes.
	EvictionRate float64
	// GracefulEvictionTimeout is after which an old copy that still waits for its replacement is reported.
	GracefulEvictionTimeout time.Duration
	// FailBack tells whether objects return by themselves, if their policy doesn't say.
	FailBack policyv1alpha1.FailBackMode
	// FailBackWindow is how long a cluster must have been healthy without a break before objects return to it, if their
	// policy doesn't say.
	FailBackWindow time.Duration
	// Limits bound the returns per hour.
	Limits failover.Limits
}

// DefaultOptions are what production uses.
func DefaultOptions() Options {
	return Options{
		ClusterFailoverAfter: 5 * time.Minute, EvictionRate: 0.5, GracefulEvictionTimeout: 10 * time.Minute,
		FailBack: policyv1alpha1.FailBackAutomatic, FailBackWindow: 5 * time.Minute,
		Limits: failover.Limits{PerHour: 240, PerClusterPerHour: 120},
	}
}

// Validate names the first option that makes no sense.
func (o Options) Validate() error {
	switch {
	case o.FailBack != policyv1alpha1.FailBackAutomatic && o.FailBack != policyv1alpha1.FailBackNever:
		return fmt.Errorf("fail-back: must be Automatic or Never, not %q", o.FailBack)
	case o.EvictionRate < 0:
		return fmt.Errorf("resource-eviction-rate: must not be negative, but is %g", o.EvictionRate)
	case o.ClusterFailoverAfter < 0 || o.GracefulEvictionTimeout < 0 || o.FailBackWindow < 0:
		return fmt.Errorf("cluster-failover-after, graceful-eviction-timeout and fail-back-window must not be negative")
	}
	return nil
}
