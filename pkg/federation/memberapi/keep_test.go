package memberapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
)

// aggregator is a kube-apiserver that says of an APIService whether it reaches the server. It finds out at once when it
// is lost, and only by being asked that it is back: the worst that a real one does.
type aggregator struct {
	client.Client
	reaches atomic.Bool
	found   atomic.Bool
	// refuses to be handed requests back.
	refuses error
}

func newAggregator(t *testing.T) *aggregator {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiregistrationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	a := &aggregator{}
	a.Client = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
			options ...client.GetOption) error {
			err := c.Get(ctx, key, object, options...)
			if registration, ok := object.(*apiregistrationv1.APIService); ok && err == nil {
				registration.Status.Conditions = []apiregistrationv1.APIServiceCondition{a.condition()}
			}
			return err
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object,
			options ...client.CreateOption) error {
			a.find(object)
			return c.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch,
			options ...client.PatchOption) error {
			a.find(object)
			return c.Patch(ctx, object, patch, options...)
		},
	})
	return a
}

// lose has it not reach the server from now on.
func (a *aggregator) lose() {
	a.reaches.Store(false)
	a.found.Store(false)
}

func (a *aggregator) find(object client.Object) {
	if _, ok := object.(*apiregistrationv1.APIService); ok {
		a.found.Store(a.reaches.Load())
	}
}

func (a *aggregator) condition() apiregistrationv1.APIServiceCondition {
	if a.found.Load() {
		return apiregistrationv1.APIServiceCondition{
			Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionTrue, Reason: reasonReached,
		}
	}
	return apiregistrationv1.APIServiceCondition{
		Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionFalse, Reason: "FailedDiscoveryCheck",
		Message: "no route",
	}
}

func (a *aggregator) get(t *testing.T, name string) (*apiregistrationv1.APIService, bool) {
	t.Helper()
	registration := &apiregistrationv1.APIService{}
	err := a.Get(t.Context(), client.ObjectKey{Name: name}, registration)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return registration, err == nil
}

// registered for how much of a time.
func (a *aggregator) registered(t *testing.T, during time.Duration) (clusters, trial time.Duration) {
	t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(time.Second) {
		if _, found := a.get(t, clusterv1alpha1.APIServiceName); found {
			clusters += time.Second
		}
		if _, found := a.get(t, clusterv1alpha1.TrialAPIServiceName); found {
			trial += time.Second
		}
	}
	return clusters, trial
}

// keeping runs keepPublished in a bubble, whose time passes at once.
func keeping(t *testing.T, reaches bool, check func(t *testing.T, a *aggregator)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := newAggregator(t)
		a.reaches.Store(reaches)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			p := &publisher{
				client: a.Client, address: netip.MustParseAddrPort("10.0.0.1:8443"),
				mayHandBack: func(context.Context) error { return a.refuses },
			}
			(&Server{log: logr.Discard()}).keepPublished(ctx, p)
		}()
		// Checks are never made in the very moment in which the server looks.
		time.Sleep(time.Millisecond)
		check(t, a)
		cancel()
		<-done
	})
}

func TestItIsTriedAgainUntilTheKubeAPIServerReachesTheServer(t *testing.T) {
	keeping(t, false, func(t *testing.T, a *aggregator) {
		kept, tried := a.registered(t, 3*time.Hour)
		if kept > 0 {
			t.Errorf("people were kept from Clusters for %s of 3 hours", kept)
		}
		if tried < 14*reachTimeout || tried > 5*time.Minute {
			t.Errorf("it was tried for %s of 3 hours", tried)
		}
		a.reaches.Store(true)
		time.Sleep(longestPause + time.Second)
		if got, tried := a.registered(t, time.Hour); got != time.Hour || tried > 0 {
			t.Errorf("it was registered for %s of an hour in which it is reached, and tried for %s", got, tried)
		}
	})
}

func TestWhatIsNotReachedAnyMoreIsGivenBackForAWhile(t *testing.T) {
	keeping(t, true, func(t *testing.T, a *aggregator) {
		if got, _ := a.registered(t, time.Hour); got < time.Hour-2*time.Second {
			t.Fatalf("it was registered for %s of an hour", got)
		}
		a.lose()
		time.Sleep((lostAfter - 2) * lookAfter)
		a.reaches.Store(true)
		if got, _ := a.registered(t, time.Minute); got != time.Minute {
			t.Errorf("it was given back for a short break: registered for %s of a minute", got)
		}
		a.lose()
		time.Sleep((lostAfter + 1) * lookAfter)
		if _, found := a.get(t, clusterv1alpha1.APIServiceName); found {
			t.Error("it is still registered")
		}
		a.reaches.Store(true)
		time.Sleep(firstPause)
		if got, _ := a.registered(t, time.Hour); got != time.Hour {
			t.Errorf("reached again, it was registered for %s of an hour", got)
		}
	})
}

// What a process left that could hand requests back is removed by one that cannot.
func TestNothingIsTakenThatCannotBeHandedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAggregator(t)
		a.reaches.Store(true)
		p := &publisher{
			client: a.Client, address: netip.MustParseAddrPort("10.0.0.1:8443"),
			mayHandBack: func(context.Context) error { return a.refuses },
		}
		if err := p.publish(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.refuses = &noWayBackError{errors.New("no")}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
		defer cancel()
		go (&Server{log: logr.Discard()}).keepPublished(ctx, p)
		time.Sleep(time.Millisecond)
		if kept, tried := a.registered(t, 2*time.Hour); kept+tried > 0 {
			t.Errorf("people were kept from Clusters for %s, and it was tried for %s", kept, tried)
		}
	})
}

func TestWhoMayHandBack(t *testing.T) {
	status := 0
	fleet := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/cluster.karmada.io/v1/clusters" ||
			r.Header.Get("Impersonate-Group") != fleetv1alpha1.MastersGroup {
			t.Errorf("asked for %s as %v", r.URL, r.Header)
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(fleet.Close)
	may, err := mayHandBack(&rest.Config{Host: fleet.URL})
	if err != nil {
		t.Fatal(err)
	}
	var noWayBack *noWayBackError
	for _, status = range []int{http.StatusOK, http.StatusForbidden, http.StatusInternalServerError} {
		if err := may(t.Context()); (err == nil) != (status == http.StatusOK) ||
			errors.As(err, &noWayBack) != (status == http.StatusForbidden) {
			t.Errorf("%d: got %v", status, err)
		}
	}
}

func TestWhoRemovesTheRegistrationWantsItGone(t *testing.T) {
	keeping(t, true, func(t *testing.T, a *aggregator) {
		time.Sleep(time.Minute)
		registration, _ := a.get(t, clusterv1alpha1.APIServiceName)
		if err := a.Delete(t.Context(), registration); err != nil {
			t.Fatal(err)
		}
		if got, _ := a.registered(t, time.Hour); got > 0 {
			t.Errorf("it was registered again, for %s", got)
		}
	})
}

func TestWhatAKilledServerLeftIsMendedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAggregator(t)
		p := &publisher{
			client: a.Client, address: netip.MustParseAddrPort("10.0.0.1:8443"), authority: []byte("new"),
			mayHandBack: func(context.Context) error { return nil },
		}
		for _, gv := range []schema.GroupVersion{clusters, trial} {
			left := &apiregistrationv1.APIService{
				ObjectMeta: metav1.ObjectMeta{Name: nameOf(gv), Labels: map[string]string{managedByLabel: managedBy}},
			}
			fillRegistration(left, gv, []byte("old"))
			if err := a.Create(t.Context(), left); err != nil {
				t.Fatal(err)
			}
		}
		a.reaches.Store(true)
		if err := p.publish(t.Context()); err != nil {
			t.Fatal(err)
		}
		registration, found := a.get(t, clusterv1alpha1.APIServiceName)
		if !found || string(registration.Spec.CABundle) != "new" {
			t.Errorf("registered: %v, with the authority %q", found, registration.Spec.CABundle)
		}
		if _, found := a.get(t, clusterv1alpha1.TrialAPIServiceName); found {
			t.Error("the trial is left")
		}
	})
}
