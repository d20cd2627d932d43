package clusterautoscaler

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/trellis-garden/trellis/pkg/managers"
)

const leaseNamespace = "shoot--demo--member1"

// replica is one that works while it leads.
type replica struct {
	works atomic.Bool
	ended chan error
}

func (r *replica) work(ctx context.Context) error {
	r.works.Store(true)
	defer r.works.Store(false)
	<-ctx.Done()
	return nil
}

// begin has a replica of a name compete.
func begin(ctx context.Context, clientset *kubernetesfake.Clientset, name string) *replica {
	r := &replica{ended: make(chan error, 1)}
	go func() { r.ended <- lead(ctx, newLock(clientset.CoordinationV1(), leaseNamespace, name), r.work) }()
	return r
}

// One of two works. The other one goes on when the first has ended, and not before its lease has.
func TestOneOfTwoWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientset := kubernetesfake.NewClientset()
		ctx, end := context.WithCancel(t.Context())
		first := begin(ctx, clientset, "first")
		time.Sleep(managers.RetryPeriod)
		other, stop := context.WithCancel(t.Context())
		second := begin(other, clientset, "second")
		time.Sleep(3 * managers.LeaseDuration)
		if !first.works.Load() || second.works.Load() {
			t.Fatalf("the first works: %v, the second: %v", first.works.Load(), second.works.Load())
		}
		end()
		if err := <-first.ended; err != nil {
			t.Errorf("the first has ended with %v", err)
		}
		time.Sleep(managers.LeaseDuration / 2)
		if first.works.Load() || second.works.Load() {
			t.Errorf("somebody works while the lease of the first is good")
		}
		time.Sleep(managers.LeaseDuration)
		if !second.works.Load() {
			t.Error("nobody works")
		}
		stop()
		if err := <-second.ended; err != nil {
			t.Errorf("the second has ended with %v", err)
		}
		synctest.Wait()
	})
}

// Who cannot renew the lease stops to work before another one may begin, and ends.
func TestWhoLosesTheLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientset := kubernetesfake.NewClientset()
		var away atomic.Bool
		clientset.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return away.Load(), nil, errors.New("the seed does not answer")
		})
		r := begin(t.Context(), clientset, "first")
		time.Sleep(managers.RetryPeriod)
		away.Store(true)
		since := time.Now()
		err := <-r.ended
		if err == nil || !strings.Contains(err.Error(), "the lease "+leaseNamespace+"/cluster-autoscaler") {
			t.Errorf("it ended with %v", err)
		}
		if took := time.Since(since); took >= managers.LeaseDuration {
			t.Errorf("it ended after %s, when another one may have begun", took)
		}
		synctest.Wait()
		if r.works.Load() {
			t.Error("it still works")
		}
	})
}

// What the work ends with is told.
func TestTheEndOfTheWorkIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		err := lead(t.Context(), newLock(kubernetesfake.NewClientset().CoordinationV1(), leaseNamespace, "first"),
			func(context.Context) error { return broken })
		if !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	})
}

// Who stands by looks at nothing, and is alive.
func TestWhoStandsByIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alive := &heartbeat{}
		ask := func() int {
			answer := httptest.NewRecorder()
			alive.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/healthz", nil))
			return answer.Code
		}
		time.Sleep(2 * inactivity)
		if code := ask(); code != http.StatusOK {
			t.Errorf("it stands by: %d", code)
		}
		alive.beat()
		if code := ask(); code != http.StatusOK {
			t.Errorf("it works: %d", code)
		}
		time.Sleep(2 * inactivity)
		if code := ask(); code != http.StatusInternalServerError {
			t.Errorf("it has done nothing for long: %d", code)
		}
	})
}
