package kills

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

// state is all that is left when gardenlet has ended: what the API servers of garden, seed and shoot hold.
type state struct {
	at           time.Time
	garden, seed content
	cluster      cluster
}

// versions tell states of one world apart.
func (s state) versions() [3]int { return [3]int{s.garden.version, s.seed.version, s.cluster.version} }

// scheme knows the kinds that gardenlet works with, in the garden and in the seed.
var scheme = sync.OnceValue(func() *runtime.Scheme {
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		machinev1alpha1.AddToScheme,
		clientgoscheme.AddToScheme, apiregistrationv1.AddToScheme, gardencorev1beta1.AddToScheme,
		securityv1alpha1.AddToScheme, extensionsv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme,
		gatewayv1.Install,
	} {
		utilruntime.Must(add(all))
	}
	return all
})

// world is what surrounds gardenlet: API servers, and those who answer there.
type world struct {
	// lock is held while anything changes.
	lock         sync.Mutex
	garden, seed *tracker
	// gardenClient and seedClient are those of everybody but gardenlet.
	gardenClient, seedClient client.WithWatch
	// cluster is what the API server of the shoot holds, and address where it is.
	cluster cluster
	address string
	// changed wakes up those who answer.
	changed chan struct{}
}

// newWorld makes a world in a state.
func newWorld(begin state) (*world, error) {
	w := &world{cluster: begin.cluster.clone(), changed: make(chan struct{}, 1)}
	var err error
	if w.garden, err = newTracker(scheme(), begin.garden, &w.lock, w.wake); err != nil {
		return nil, fmt.Errorf("garden: %w", err)
	}
	if w.seed, err = newTracker(scheme(), begin.seed, &w.lock, w.wake); err != nil {
		return nil, fmt.Errorf("seed: %w", err)
	}
	w.gardenClient = newClient(w.garden, &gardencorev1beta1.Shoot{},
		&gardencorev1beta1.BackupEntry{})
	w.seedClient = newClient(w.seed, &resourcesv1alpha1.ManagedResource{},
		&extensionsv1alpha1.Infrastructure{}, &extensionsv1alpha1.ControlPlane{}, &extensionsv1alpha1.Worker{},
		&extensionsv1alpha1.Network{}, &extensionsv1alpha1.DNSRecord{}, &extensionsv1alpha1.Extension{},
		&extensionsv1alpha1.OperatingSystemConfig{}, &extensionsv1alpha1.ContainerRuntime{})
	w.wake()
	return w, nil
}

func newClient(objects *tracker, withStatus ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().
		WithScheme(scheme()).WithObjectTracker(objects).WithStatusSubresource(withStatus...).Build()
}

// wake tells those who answer to look.
func (w *world) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// state is a copy of what is held now.
func (w *world) state() state {
	w.lock.Lock()
	defer w.lock.Unlock()
	return state{
		at: time.Now(), garden: w.garden.clone(), seed: w.seed.clone(), cluster: w.cluster.clone(),
	}
}

// settling is longer than those who answer take for what was asked of them last.
const settling = 20 * answerDelay

// inWorld does something in a world that begins in a state, and returns the state afterwards. Time is that of a bubble:
// it passes when everybody waits.
func inWorld(t *testing.T, begin state, do func(context.Context, *world) error) (after state, err error) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.Sleep(max(0, time.Until(begin.at.Add(time.Second))))
		var w *world
		if w, err = newWorld(begin); err != nil {
			cancel()
			return
		}
		defer serveCluster(w)()
		var answering sync.WaitGroup
		answering.Go(func() { w.answer(ctx) })
		err = do(ctx, w)
		time.Sleep(settling)
		cancel()
		answering.Wait()
		after = w.state()
	})
	return after, err
}
