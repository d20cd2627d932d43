package watchdog

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
)

// sliceOf is that of a service of the shoot, with endpoints that are ready or not.
func sliceOf(service string, ready ...bool) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: service + "-x", Labels: map[string]string{discoveryv1.LabelServiceName: service},
	}}
	for _, r := range ready {
		slice.Endpoints = append(slice.Endpoints,
			discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: new(r)}})
	}
	return slice
}

// crashed is a pod of the control plane that waits; its owner is named after the role.
func crashed(role string, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: role,
			Labels: component.WithControlPlaneRole(map[string]string{component.LabelRole: role}),
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: role, UID: types.UID(role), Controller: new(true)},
			},
		},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "sidecar", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			{
				Name: role, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
					Reason: "CrashLoopBackOff",
				}},
			},
		}},
	}
	if change != nil {
		change(pod)
	}
	return pod
}

type garden struct {
	t      *testing.T
	now    time.Time
	seed   client.Client
	weeder *Weeder
}

// newGarden has a shoot with these pods.
func newGarden(t *testing.T, settings *gardencorev1beta1.SeedSettings, role string, pods ...*corev1.Pod) *garden {
	t.Helper()
	g := &garden{t: t, now: noon}
	seed := fake.NewClientBuilder().WithScheme(schemeOf(t)).WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{gardencorev1beta1.GardenRole: role},
	}})
	for _, pod := range pods {
		seed.WithObjects(pod)
	}
	g.seed = seed.Build()
	g.weeder = &Weeder{
		Garden: fake.NewClientBuilder().WithScheme(schemeOf(t)).WithObjects(&gardencorev1beta1.Seed{
			ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: gardencorev1beta1.SeedSpec{Settings: settings},
		}).Build(),
		Seed: g.seed, SeedName: "s", Now: func() time.Time { return g.now },
	}
	return g
}

// weed looks once, and says whether it wants to look again.
func (g *garden) weed(service string) bool {
	g.t.Helper()
	result, err := g.weeder.Reconcile(g.t.Context(),
		ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: service}})
	if err != nil {
		g.t.Fatal(err)
	}
	return result.RequeueAfter > 0
}

// left are the names of the pods that are there.
func (g *garden) left() []string {
	g.t.Helper()
	pods := &corev1.PodList{}
	if err := g.seed.List(g.t.Context(), pods); err != nil {
		g.t.Fatal(err)
	}
	var names []string
	for _, pod := range pods.Items {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return names
}

// Each service that turns ready has those restarted that depend on it, and nobody else.
func TestWhoIsRestartedForWhom(t *testing.T) {
	all := []string{"apiserver", "controller-manager", "events", "main"}
	for service, want := range map[string][]string{
		etcdcomponent.ClientServiceName(etcdcomponent.Main):   {"controller-manager", "events", "main"},
		etcdcomponent.ClientServiceName(etcdcomponent.Events): {"controller-manager", "events", "main"},
		kubeapiserver.Name: {"apiserver", "events", "main"},
	} {
		var pods []*corev1.Pod
		for _, role := range all {
			pods = append(pods, crashed(role, nil))
		}
		g := newGarden(t, nil, gardencorev1beta1.GardenRoleShoot, pods...)
		if g.weed(service) || !slices.Equal(g.left(), all) {
			t.Errorf("%s: before it turned ready: left are %v", service, g.left())
		}
		requests := g.weeder.Begin(t.Context(), sliceOf(service, true))
		if len(requests) != 1 || requests[0].Name != service || requests[0].Namespace != namespace {
			t.Fatalf("%s: requests %v", service, requests)
		}
		if !g.weed(service) || !slices.Equal(g.left(), want) {
			t.Errorf("%s: left are %v, want %v", service, g.left(), want)
		}
	}
}

func TestWhichPodsAreRestarted(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for name, test := range map[string]struct {
		settings *gardencorev1beta1.SeedSettings
		role     string
		change   func(*corev1.Pod)
		restarts bool
	}{
		"one that waits": {nil, gardencorev1beta1.GardenRoleShoot, nil, true},
		"an init container of it waits": {nil, gardencorev1beta1.GardenRoleShoot, func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = p.Status.ContainerStatuses
			p.Status.ContainerStatuses = nil
		}, true},
		"one that runs": {nil, gardencorev1beta1.GardenRoleShoot, func(p *corev1.Pod) {
			p.Status.ContainerStatuses[1].State = running
		}, false},
		"one that waits for its image": {nil, gardencorev1beta1.GardenRoleShoot, func(p *corev1.Pod) {
			p.Status.ContainerStatuses[1].State.Waiting.Reason = "ImagePullBackOff"
		}, false},
		"one that nobody would make anew": {nil, gardencorev1beta1.GardenRoleShoot, func(p *corev1.Pod) {
			p.OwnerReferences = nil
		}, false},
		"one of others in the namespace": {nil, gardencorev1beta1.GardenRoleShoot, func(p *corev1.Pod) {
			delete(p.Labels, component.LabelGardenRole)
		}, false},
		"in a namespace that is no shoot's": {nil, "", nil, false},
		"the weeder is turned off": {&gardencorev1beta1.SeedSettings{
			DependencyWatchdog: &gardencorev1beta1.SeedSettingDependencyWatchdog{
				Weeder: &gardencorev1beta1.SeedSettingDependencyWatchdogWeeder{},
			},
		}, gardencorev1beta1.GardenRoleShoot, nil, false},
	} {
		g := newGarden(t, test.settings, test.role, crashed("scheduler", test.change))
		g.weeder.Begin(t.Context(), sliceOf(kubeapiserver.Name, true))
		g.weed(kubeapiserver.Name)
		if got := len(g.left()) == 0; got != test.restarts {
			t.Errorf("%s: restarted: %v, want %v", name, got, test.restarts)
		}
	}
}

// What goes on crashing has another reason, and is left to its own pace; and after a while all is.
func TestRestartsEnd(t *testing.T) {
	g := newGarden(t, nil, gardencorev1beta1.GardenRoleShoot)
	g.weeder.Begin(t.Context(), sliceOf(kubeapiserver.Name, true))
	restarts := 0
	crash := func() {
		t.Helper()
		if err := client.IgnoreAlreadyExists(g.seed.Create(t.Context(), crashed("scheduler", nil))); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		crash()
		g.weed(kubeapiserver.Name)
		if len(g.left()) == 0 {
			restarts++
		}
	}
	if restarts != mostWeeded {
		t.Errorf("a pod was restarted %d times, want %d", restarts, mostWeeded)
	}
	g.weeder.Begin(t.Context(), sliceOf(kubeapiserver.Name, true))
	g.now = g.now.Add(weedTime - time.Second)
	if again := g.weed(kubeapiserver.Name); !again || len(g.left()) != 0 {
		t.Errorf("when it turned ready once more: %v is left", g.left())
	}
	crash()
	g.now = g.now.Add(time.Second)
	if again := g.weed(kubeapiserver.Name); again || len(g.left()) != 1 {
		t.Errorf("later: looks again: %v, left are %v", again, g.left())
	}
}

func TestTurnedReady(t *testing.T) {
	const service = kubeapiserver.Name
	for name, test := range map[string]struct {
		before, after *discoveryv1.EndpointSlice
		want          bool
	}{
		"the first is ready":          {sliceOf(service), sliceOf(service, true), true},
		"one turns ready":             {sliceOf(service, false, false), sliceOf(service, false, true), true},
		"a second one turns ready":    {sliceOf(service, false, true), sliceOf(service, true, true), false},
		"one is ready no longer":      {sliceOf(service, true), sliceOf(service, false), false},
		"one is there, but not ready": {sliceOf(service), sliceOf(service, false), false},
	} {
		update := event.TypedUpdateEvent[*discoveryv1.EndpointSlice]{ObjectOld: test.before, ObjectNew: test.after}
		if got := TurnedReady().Update(update); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	for ready, slice := range map[bool]*discoveryv1.EndpointSlice{
		true: sliceOf(service, true), false: sliceOf(service, false),
	} {
		created := event.TypedCreateEvent[*discoveryv1.EndpointSlice]{Object: slice}
		if got := TurnedReady().Create(created); got != ready {
			t.Errorf("found when gardenlet starts, ready %v: %v", ready, got)
		}
	}
}

// The cache has what both parts read, and of other objects nothing.
func TestCache(t *testing.T) {
	options, err := Cache()
	if err != nil {
		t.Fatal(err)
	}
	for object, by := range options.ByObject {
		if _, ok := object.(*discoveryv1.EndpointSlice); !ok {
			continue
		}
		for service, want := range map[string]bool{
			"etcd-main-client": true, "etcd-events-client": true, "kube-apiserver": true, "vpn-seed-server": false,
		} {
			if got := by.Label.Matches(labels.Set(sliceOf(service).Labels)); got != want {
				t.Errorf("%s is watched: %v, want %v", service, got, want)
			}
		}
	}
}
