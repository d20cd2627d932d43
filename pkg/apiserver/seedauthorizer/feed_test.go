package seedauthorizer

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// store is a Storage with a list and events.
type store struct {
	list   runtime.Object
	events *watch.FakeWatcher
}

func (s *store) List(context.Context, *metainternalversion.ListOptions) (runtime.Object, error) {
	return s.list, nil
}

func (s *store) Watch(context.Context, *metainternalversion.ListOptions) (watch.Interface, error) {
	return s.events, nil
}

// shared is how the watch cache hands an object to many watchers.
type shared struct{ runtime.Object }

func (s shared) CacheEncode(runtime.Identifier, func(runtime.Object, io.Writer) error, io.Writer) error {
	return nil
}

func (s shared) GetObject() runtime.Object { return s.Object.DeepCopyObject() }

func TestFeedsFollowTheStores(t *testing.T) {
	shoots := &store{
		list: &gardencorev1beta1.ShootList{
			ListMeta: metav1.ListMeta{ResourceVersion: "1"},
			Items:    []gardencorev1beta1.Shoot{*versioned(shootOn("garden-x", "first", "one"), "1")},
		},
		events: watch.NewFakeWithChanSize(10, false),
	}
	var mu sync.Mutex
	asked := map[schema.GroupResource]bool{}
	graph := NewGraph()
	feeds, err := NewFeeds(graph, func(resource schema.GroupResource) (Storage, bool) {
		mu.Lock()
		defer mu.Unlock()
		asked[resource] = true
		if resource == core("shoots") {
			return shoots, true
		}
		return &store{list: &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, events: watch.NewFake()},
			true
	}, kubernetesfake.NewClientset())
	if err != nil {
		t.Fatal(err)
	}
	if len(asked) != len(sources) || feeds.Synced() {
		t.Fatalf("asked for %v; synced before the start: %v", asked, feeds.Synced())
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go feeds.Run(ctx)
	await(t, "the first list", feeds.Synced)
	first, second := Vertex{kindShoot, "garden-x", "first"}, Vertex{kindShoot, "garden-x", "second"}
	if !graph.Reaches(first, "one") {
		t.Error("what was listed is not known")
	}
	shoots.events.Add(versioned(shootOn("garden-x", "second", "one"), "2"))
	await(t, "an added shoot", func() bool { return graph.Reaches(second, "one") })
	shoots.events.Action(watch.Modified, shared{versioned(shootOn("garden-x", "second", "two"), "3")})
	await(t, "a moved shoot", func() bool { return graph.Reaches(second, "two") && !graph.Reaches(second, "one") })
	shoots.events.Delete(versioned(shootOn("garden-x", "first", "one"), "4"))
	await(t, "a deleted shoot", func() bool { return !graph.Reaches(first, "one") })
}

func versioned(shoot *gardencorev1beta1.Shoot, version string) *gardencorev1beta1.Shoot {
	shoot.ResourceVersion = version
	return shoot
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true,
		func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		t.Fatalf("%s is not seen", what)
	}
}

func TestFeedsNeedEveryKind(t *testing.T) {
	_, err := NewFeeds(NewGraph(), func(schema.GroupResource) (Storage, bool) { return nil, false },
		kubernetesfake.NewClientset())
	if err == nil {
		t.Error("a graph without shoots decides wrongly")
	}
}

func TestFeedRefusesOtherTypes(t *testing.T) {
	f := &feed{graph: NewGraph(), kind: kindShoot, edges: statedBy(shootEdges)}
	if err := f.Add(&gardencorev1beta1.Seed{}); err == nil {
		t.Error("a seed is no shoot")
	}
	if err := f.Replace([]any{"text"}, "1"); err == nil || f.synced.Load() {
		t.Error("text is no shoot")
	}
}
