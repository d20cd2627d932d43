package managers

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
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

// TestBusyControllersEnd stops controllers with several workers while objects keep coming: all workers leave. One stop
// in about thirty does not end with the priority queue of controller-runtime v0.24.
func TestBusyControllersEnd(t *testing.T) {
	const stops, objects = 300, 50
	settings := controller.TypedOptions[int]{
		SkipNameValidation: new(true),
		Reconciler: reconcile.TypedFunc[int](func(_ context.Context, object int) (reconcile.Result, error) {
			<-time.After(time.Duration(object%7) * 30 * time.Microsecond)
			return reconcile.Result{}, nil
		}),
		MaxConcurrentReconciles: 5, UsePriorityQueue: Patient(manager.Options{}).Controller.UsePriorityQueue,
	}
	for stop := range stops {
		c, err := controller.NewTypedUnmanaged("busy", settings)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		type queue = workqueue.TypedRateLimitingInterface[int]
		err = c.Watch(source.TypedFunc[int](func(ctx context.Context, q queue) error {
			go func() {
				for object := 0; ctx.Err() == nil; object++ {
					q.Add(object % objects)
					if object == stop%10*objects {
						cancel()
					}
				}
			}()
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Start(ctx) }()
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("stop %d: workers are still there after a minute", stop)
		}
	}
}
