package watchdog

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
)

const (
	namespace = "shoot--a--b"
	kcm       = "kube-controller-manager"
	mcm       = "machine-controller-manager"
	ca        = "cluster-autoscaler"
)

// shootAPI is the API server of a shoot, as far as the Prober asks it.
type shootAPI struct {
	mu     sync.Mutex
	leases []coordinationv1.Lease
	// status is answered instead, if it is not 0.
	status int
	// pages counts answers with Leases.
	pages int
}

func (s *shootAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if s.status != 0 {
		w.WriteHeader(s.status)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: int32(s.status), Reason: reasons[s.status],
		})
		return
	}
	if r.URL.Path == "/version" {
		_, _ = w.Write([]byte(`{"major":"1"}`))
		return
	}
	s.pages++
	begin, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	size, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	end := min(begin+size, len(s.leases))
	list := coordinationv1.LeaseList{
		TypeMeta: metav1.TypeMeta{Kind: "LeaseList", APIVersion: "coordination.k8s.io/v1"},
		Items:    s.leases[begin:end],
	}
	if end < len(s.leases) {
		list.Continue = strconv.Itoa(end)
	}
	_ = json.NewEncoder(w).Encode(list)
}

var reasons = map[int]metav1.StatusReason{
	http.StatusTooManyRequests:    metav1.StatusReasonTooManyRequests,
	http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
}

// renew sets the times of the Leases of nodes, and makes those that are not there.
func (s *shootAPI) renew(at time.Time, nodes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, node := range nodes {
		i := slices.IndexFunc(s.leases, func(l coordinationv1.Lease) bool { return l.Name == node })
		if i < 0 {
			i = len(s.leases)
			s.leases = append(s.leases, coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node}})
		}
		s.leases[i].Spec.RenewTime = new(metav1.NewMicroTime(at))
	}
}

func (s *shootAPI) answer(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// bench is a seed with one shoot of three nodes, and the Prober.
type bench struct {
	t      *testing.T
	now    time.Time
	api    *shootAPI
	garden client.Client
	seed   client.Client
	prober *Prober
	// told are the events, each with what it is about.
	told []string
	// next is when the Prober wants to look again.
	next time.Duration
}

func schemeOf(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, gardencorev1beta1.AddToScheme, machinev1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// aShoot has nodes and has been reconciled.
func aShoot() *gardencorev1beta1.Shoot {
	return &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-a", Name: "b"},
		Spec: gardencorev1beta1.ShootSpec{
			SeedName: new("s"),
			Provider: gardencorev1beta1.Provider{Workers: []gardencorev1beta1.Worker{{Name: "w"}}},
		},
		Status: gardencorev1beta1.ShootStatus{
			TechnicalID: namespace, SeedName: new("s"),
			LastOperation: &gardencorev1beta1.LastOperation{
				Type:  gardencorev1beta1.LastOperationTypeReconcile,
				State: gardencorev1beta1.LastOperationStateProcessing,
			},
		},
	}
}

func aDeployment(name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: new(replicas)},
		Status:     appsv1.DeploymentStatus{ReadyReplicas: replicas},
	}
}

// newBench has nodes with fresh Leases.
func newBench(t *testing.T, nodes ...string) *bench {
	t.Helper()
	b := &bench{t: t, now: noon, api: &shootAPI{}}
	scheme := schemeOf(t)
	b.garden = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&gardencorev1beta1.Shoot{}).
		WithObjects(aShoot(), &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "s"}}).Build()
	seed := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(aDeployment(kcm, 2), aDeployment(mcm, 1), aDeployment(ca, 1))
	for _, node := range nodes {
		seed.WithObjects(aMachine(node, nil))
	}
	b.seed = seed.Build()
	b.endpoints(kubeapiserver.Name, true)
	b.endpoints(etcdcomponent.ClientServiceName(etcdcomponent.Main), true)
	b.api.renew(b.now, nodes...)
	b.restart()
	return b
}

// restart begins with a Prober that knows nothing.
func (b *bench) restart() {
	b.t.Helper()
	server := httptest.NewServer(b.api)
	b.t.Cleanup(server.Close)
	b.prober = &Prober{
		Garden: b.garden, Watched: b.seed, Seed: b.seed, SeedName: "s", Now: func() time.Time { return b.now },
		Events: b,
		Connect: func(context.Context, string) (kubernetes.Interface, error) {
			return kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
		},
	}
}

// Eventf notes an event.
func (b *bench) Eventf(about, _ runtime.Object, kind, reason, action, note string, arguments ...any) {
	shoot, ok := about.(*gardencorev1beta1.Shoot)
	if !ok {
		b.t.Errorf("an event about %T", about)
		return
	}
	b.told = append(b.told, fmt.Sprintf("%s/%s: %s %s %s: %s", shoot.Namespace, shoot.Name, kind, reason, action,
		fmt.Sprintf(note, arguments...)))
}

// after lets time pass, with a look every ten seconds.
func (b *bench) after(d time.Duration) {
	b.t.Helper()
	for end := b.now.Add(d); ; {
		result, err := b.prober.Reconcile(b.t.Context(),
			ctrl.Request{NamespacedName: client.ObjectKeyFromObject(aShoot())})
		if err != nil {
			b.t.Fatal(err)
		}
		b.next = result.RequeueAfter
		if !b.now.Before(end) {
			return
		}
		b.now = b.now.Add(min(probePeriod, end.Sub(b.now)))
	}
}

// renewing is as after, while nodes renew their Leases.
func (b *bench) renewing(d time.Duration, nodes ...string) {
	b.t.Helper()
	for end := b.now.Add(d); b.now.Before(end); {
		b.after(min(probePeriod, end.Sub(b.now)))
		b.api.renew(b.now, nodes...)
	}
	b.after(0)
}

func (b *bench) deployment(name string) *appsv1.Deployment {
	b.t.Helper()
	deployment := &appsv1.Deployment{}
	if err := b.seed.Get(b.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, deployment); err != nil {
		b.t.Fatal(err)
	}
	return deployment
}

// ready sets how many pods of a Deployment are ready.
func (b *bench) ready(name string, replicas int32) {
	b.t.Helper()
	deployment := b.deployment(name)
	deployment.Status.ReadyReplicas = replicas
	if err := b.seed.Status().Update(b.t.Context(), deployment); err != nil {
		b.t.Fatal(err)
	}
}

// want are the replicas of the controllers, in the order of their start.
func (b *bench) want(when string, replicas ...int32) {
	b.t.Helper()
	for i, name := range []string{kcm, mcm, ca} {
		deployment := b.deployment(name)
		if got := *deployment.Spec.Replicas; got != replicas[i] {
			b.t.Errorf("%s: %s has %d replicas, want %d", when, name, got, replicas[i])
		}
		if component.IsHeld(deployment) != (replicas[i] == 0) {
			b.t.Errorf("%s: %s is held: %v", when, name, component.IsHeld(deployment))
		}
	}
}

// endpoints makes a service of the control plane have a ready endpoint, or none.
func (b *bench) endpoints(service string, ready bool) {
	b.t.Helper()
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service},
	}}
	if err := b.seed.Delete(b.t.Context(), slice); client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
	slice.Endpoints = []discoveryv1.Endpoint{
		{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(ready)}},
	}
	if err := b.seed.Create(b.t.Context(), slice); err != nil {
		b.t.Fatal(err)
	}
}

// change changes the Shoot.
func (b *bench) change(change func(*gardencorev1beta1.Shoot)) {
	b.t.Helper()
	shoot := aShoot()
	if err := b.garden.Get(b.t.Context(), client.ObjectKeyFromObject(shoot), shoot); err != nil {
		b.t.Fatal(err)
	}
	change(shoot)
	status := shoot.Status
	if err := b.garden.Update(b.t.Context(), shoot); err != nil {
		b.t.Fatal(err)
	}
	shoot.Status = status
	if err := b.garden.Status().Update(b.t.Context(), shoot); err != nil {
		b.t.Fatal(err)
	}
}

var three = []string{"a", "b", "c"}

// The way from the nodes to the API server is cut, gardenlet is killed meanwhile, and then the way is there again.
func TestAnOutageOfTheNetwork(t *testing.T) {
	b := newBench(t, three...)
	b.renewing(5*time.Minute, three...)
	b.want("while all is well", 2, 1, 1)
	b.after(20 * time.Second)
	b.want("silent for a short time", 2, 1, 1)
	b.after(10 * time.Second)
	b.want("silent", 0, 0, 0)
	b.ready(kcm, 0)
	b.ready(mcm, 0)
	b.ready(ca, 0)

	b.restart()
	b.after(30 * time.Minute)
	b.want("after a restart of gardenlet, still silent", 0, 0, 0)

	b.restart()
	b.renewing(time.Minute, three...)
	b.want("heard again", 2, 0, 0)
	b.ready(kcm, 2)
	b.renewing(20*time.Second, three...)
	b.want("kube-controller-manager has been ready for a short time", 2, 0, 0)
	b.renewing(10*time.Second, three...)
	b.want("it is settled", 2, 1, 0)
	b.renewing(time.Minute, three...)
	b.want("machine-controller-manager is not ready", 2, 1, 0)
	b.ready(mcm, 1)
	b.renewing(time.Second, three...)
	b.want("it is", 2, 1, 1)
}

// Single nodes that are silent are broken nodes: their pods are to run elsewhere, and their machines to be replaced.
func TestBrokenNodesAreNoOutage(t *testing.T) {
	b := newBench(t, three...)
	b.renewing(30*time.Minute, "a", "b")
	b.want("one of three is silent", 2, 1, 1)
}

// A seed was away for half an hour, and kubelets come back to it one by one.
func TestASeedComesBack(t *testing.T) {
	b := newBench(t, three...)
	b.now = b.now.Add(30 * time.Minute)
	b.after(20 * time.Second)
	b.want("nodes have not come back yet", 2, 1, 1)
	b.renewing(10*time.Minute, three...)
	b.want("they have", 2, 1, 1)
}

// The API server of a shoot was away while the rest of the seed was not, but then the way to it is still cut.
func TestAnAPIServerComesBackAlone(t *testing.T) {
	b := newBench(t, three...)
	b.renewing(time.Minute, three...)
	b.api.answer(http.StatusServiceUnavailable)
	b.endpoints(kubeapiserver.Name, false)
	b.after(19 * time.Second)
	b.want("it does not answer", 2, 1, 1)
	b.after(time.Second)
	b.want("it is away", 0, 1, 1)
	b.after(30 * time.Minute)
	b.want("for long", 0, 1, 1)
	b.api.answer(0)
	b.after(0)
	b.want("it is back", 2, 1, 1)
	b.after(29 * time.Second)
	b.want("nodes have not come back yet", 2, 1, 1)
	b.after(time.Second)
	b.want("they do not", 0, 0, 0)
	b.api.answer(http.StatusServiceUnavailable)
	b.after(time.Hour)
	b.want("and it is away again", 0, 0, 0)
	b.api.answer(0)
	b.after(29 * time.Second)
	b.want("it is back, nodes are not", 0, 0, 0)
}

// The owner of a shoot is told once of each controller that is stopped, with the reason, and when it is started again.
func TestStoppedControllersAreTold(t *testing.T) {
	const (
		stopped = "garden-a/b: Warning ControllerStopped Stop: "
		started = "garden-a/b: Normal ControllerStarted Start: "
	)
	b := newBench(t, three...)
	b.renewing(time.Minute, three...)
	b.api.answer(http.StatusServiceUnavailable)
	b.endpoints(kubeapiserver.Name, false)
	b.after(time.Hour)
	b.api.answer(0)
	b.after(0)
	b.endpoints(kubeapiserver.Name, true)
	want := []string{
		stopped + "kube-controller-manager is stopped: the API server is away",
		started + "kube-controller-manager is started again",
	}
	if !slices.Equal(b.told, want) {
		t.Errorf("of an absence: got %q", b.told)
	}
	b.told = nil
	b.renewing(time.Minute, three...)
	b.renewing(time.Minute, "a")
	b.change(func(s *gardencorev1beta1.Shoot) { s.Status.IsHibernated = true })
	b.after(time.Minute)
	why := " is stopped: 2 of 3 nodes are not heard"
	want = []string{
		stopped + ca + why, stopped + mcm + why, stopped + kcm + why,
		started + kcm + " is started again", started + mcm + " is started again", started + ca + " is started again",
	}
	if !slices.Equal(b.told, want) {
		t.Errorf("of silent nodes: got %q", b.told)
	}
}

// A kube-controller-manager that has not heard of nodes for their grace period marks them as soon as it can, though the
// API server was away and not they: also with a single node, and when gardenlet was killed meanwhile.
func TestNodesAreNotJudgedByAnAbsence(t *testing.T) {
	for _, service := range []string{kubeapiserver.Name, etcdcomponent.ClientServiceName(etcdcomponent.Main)} {
		for _, nodes := range [][]string{three, {"a"}} {
			b := newBench(t, nodes...)
			b.renewing(time.Minute, nodes...)
			b.api.answer(http.StatusServiceUnavailable)
			b.endpoints(service, false)
			b.after(20 * time.Second)
			b.want("no "+service+" is ready", 0, 1, 1)
			b.restart()
			b.api.answer(0)
			b.after(0)
			b.want("the API server answers", 2, 1, 1)
		}
	}
}

// What is only slow, or not reached by gardenlet alone, is not away.
func TestAnAPIServerThatIsThereIsNotAway(t *testing.T) {
	b := newBench(t, three...)
	b.renewing(time.Minute, three...)
	b.api.answer(http.StatusServiceUnavailable)
	b.after(time.Hour)
	b.want("it does not answer", 2, 1, 1)
	if b.next > 6*time.Second {
		t.Errorf("it is looked at again after %s", b.next)
	}
	b.api.answer(0)
	b.renewing(time.Minute, three...)
	b.endpoints(kubeapiserver.Name, false)
	b.renewing(time.Minute, three...)
	b.want("it answers, though nobody is told so", 2, 1, 1)
	b.api.answer(http.StatusServiceUnavailable)
	b.after(19 * time.Second)
	b.want("it was there just now", 2, 1, 1)
}

func TestAnAPIServerWithTooMuchToDoIsGivenTime(t *testing.T) {
	b := newBench(t, three...)
	b.after(0)
	if b.next > 12*time.Second || b.next < 10*time.Second {
		t.Errorf("it is looked at again after %s", b.next)
	}
	b.api.answer(http.StatusTooManyRequests)
	b.after(time.Hour)
	b.want("it does not answer", 2, 1, 1)
	if b.next < 20*time.Second {
		t.Errorf("it is asked again after %s", b.next)
	}
}

// Who needs the controllers gets them back at once, whatever the nodes do.
func TestWhoNeedsTheControllersGetsThemBack(t *testing.T) {
	for name, change := range map[string]func(*bench){
		"is to sleep": func(b *bench) {
			b.change(func(s *gardencorev1beta1.Shoot) {
				s.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}
			})
		},
		"wakes up": func(b *bench) {
			b.change(func(s *gardencorev1beta1.Shoot) { s.Status.IsHibernated = true })
		},
		"is deleted": func(b *bench) {
			b.change(func(s *gardencorev1beta1.Shoot) { s.Finalizers = []string{"gardener"} })
			if err := b.garden.Delete(b.t.Context(), aShoot()); err != nil {
				b.t.Fatal(err)
			}
		},
		"loses its workers": func(b *bench) {
			b.change(func(s *gardencorev1beta1.Shoot) { s.Spec.Provider.Workers = nil })
		},
		"the prober is turned off": func(b *bench) {
			seed := &gardencorev1beta1.Seed{}
			if err := b.garden.Get(b.t.Context(), client.ObjectKey{Name: "s"}, seed); err != nil {
				b.t.Fatal(err)
			}
			seed.Spec.Settings = &gardencorev1beta1.SeedSettings{
				DependencyWatchdog: &gardencorev1beta1.SeedSettingDependencyWatchdog{
					Prober: &gardencorev1beta1.SeedSettingDependencyWatchdogProber{},
				},
			}
			if err := b.garden.Update(b.t.Context(), seed); err != nil {
				b.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, three...)
			b.after(time.Minute)
			b.want("before", 0, 0, 0)
			change(b)
			b.after(0)
			b.want("then", 2, 1, 1)
			b.after(10 * time.Minute)
			b.want("later", 2, 1, 1)
		})
	}
}

func TestWhichShootsAreGuarded(t *testing.T) {
	operation := func(kind gardencorev1beta1.LastOperationType,
		state gardencorev1beta1.LastOperationState) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) {
			s.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: kind, State: state}
		}
	}
	for name, test := range map[string]struct {
		change func(*gardencorev1beta1.Shoot)
		want   bool
	}{
		"reconciled":           {func(*gardencorev1beta1.Shoot) {}, true},
		"not worked on":        {func(s *gardencorev1beta1.Shoot) { s.Status.LastOperation = nil }, false},
		"being created":        {operation("Create", "Processing"), false},
		"failed to be made":    {operation("Create", "Error"), false},
		"created":              {operation("Create", "Succeeded"), true},
		"being restored":       {operation("Restore", "Processing"), false},
		"restored":             {operation("Restore", "Succeeded"), true},
		"migrated":             {operation("Migrate", "Succeeded"), false},
		"failed to be deleted": {operation("Delete", "Error"), false},
	} {
		shoot := aShoot()
		test.change(shoot)
		if got := isGuarded(shoot); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// A Deployment that people want to be left alone is, and so is one that another part of gardenlet has stopped.
func TestWhatIsNotForTheWatchdog(t *testing.T) {
	b := newBench(t, three...)
	ignored := b.deployment(mcm)
	ignored.Annotations = map[string]string{gardencorev1beta1.AnnotationWatchdogIgnoreScaling: "true"}
	if err := b.seed.Update(t.Context(), ignored); err != nil {
		t.Fatal(err)
	}
	if err := component.Scale(t.Context(), b.seed, b.deployment(ca), 0); err != nil {
		t.Fatal(err)
	}
	b.after(time.Minute)
	if got := *b.deployment(kcm).Spec.Replicas; got != 0 {
		t.Errorf("%s has %d replicas", kcm, got)
	}
	if d := b.deployment(mcm); *d.Spec.Replicas != 1 || component.IsHeld(d) {
		t.Errorf("%s, which is to be ignored: %d replicas, %v", mcm, *d.Spec.Replicas, d.Annotations)
	}
	if component.IsHeld(b.deployment(ca)) {
		t.Errorf("%s is held, but others have stopped it", ca)
	}
	b.renewing(5*time.Minute, three...)
	if got := *b.deployment(ca).Spec.Replicas; got != 0 {
		t.Errorf("%s has %d replicas, but others have stopped it", ca, got)
	}
}

// A flow that had read a Deployment before it was held, and deploys it afterwards, does not keep it from being held.
func TestALateDeploymentIsHeldAgain(t *testing.T) {
	b := newBench(t, three...)
	b.after(time.Minute)
	late := b.deployment(kcm)
	late.Spec.Replicas = new(int32(2))
	if err := b.seed.Update(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	b.after(0)
	b.want("after the next look", 0, 0, 0)
}

func TestTheGracePeriodOfTheShootCounts(t *testing.T) {
	for grace, want := range map[time.Duration]time.Duration{
		0: 30 * time.Second, 2 * time.Minute: 90 * time.Second, time.Second: leastLimit,
	} {
		shoot := aShoot()
		if grace > 0 {
			shoot.Spec.Kubernetes.KubeControllerManager = &gardencorev1beta1.KubeControllerManagerConfig{
				NodeMonitorGracePeriod: &metav1.Duration{Duration: grace},
			}
		}
		if got := limitOf(shoot); got != want {
			t.Errorf("%s: %s, want %s", grace, got, want)
		}
	}
}

// The controllers that judge nodes are started in the order that the list of components has them in.
func TestOrderOfTheControllers(t *testing.T) {
	b := newBench(t)
	deployments, err := b.prober.controllers(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, deployment := range deployments {
		names = append(names, deployment.Name)
	}
	if want := []string{kcm, mcm, ca}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}
