package moves

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

var today = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(today.Add(-d)) }

// decided is a binding of a Deployment that is in some clusters by a decision.
func decided(generation int64, at metav1.Time, clusters ...string) *workv1alpha2.ResourceBinding {
	b := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-deployment"}}
	b.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop",
		Name: "web"}
	b.Spec.Placement = &policyv1alpha1.Placement{}
	for _, name := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: name})
	}
	karmada.SetDecided(b, karmada.Decided{
		Generation: generation, Time: at, Reason: workv1alpha2.ReasonSuccess, Message: "there is room",
	})
	return b
}

func told(moves []Move) string {
	var all []string
	for _, m := range moves {
		all = append(all, fmt.Sprintf("%s %s %s", m.Type, m.Reason, strings.Join(m.Clusters, "+")))
	}
	return strings.Join(all, ", ")
}

// A move is told once, with its reason: when an object leaves or comes, not when a decision leaves it where it is.
func TestBetween(t *testing.T) {
	before := decided(1, ago(time.Hour), "one", "two")
	evicted := decided(1, ago(time.Hour), "two")
	evicted.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
		FromCluster: "one", Reason: "TaintUntolerated", CreationTimestamp: new(ago(time.Minute)),
	}}
	replaced := decided(2, ago(0), "two", "three")
	replaced.Spec.GracefulEvictionTasks = evicted.Spec.GracefulEvictionTasks
	rolled := decided(1, ago(time.Hour), "one", "two")
	rolled.Status.Rollout = &workv1alpha2.RolloutStatus{
		Revisions: []workv1alpha2.RolloutRevision{{Revision: "r1", Number: 1, Time: ago(time.Minute)}},
	}
	for what, test := range map[string]struct {
		before, after *workv1alpha2.ResourceBinding
		wanted        string
	}{
		"nothing":               {before, before, ""},
		"decided, and it stays": {before, decided(2, ago(0), "two", "one"), ""},
		"evicted":               {before, evicted, "Eviction TaintUntolerated one"},
		"replaced":              {evicted, replaced, "Decision Success three+two"},
		"both at once":          {before, replaced, "Eviction TaintUntolerated one, Decision Success three+two"},
		"a rollout":             {before, rolled, "Rollout NewRevision "},
		"the task is done":      {replaced, decided(2, ago(0), "two", "three"), ""},
	} {
		if got := told(between(test.before, test.after)); got != test.wanted {
			t.Errorf("%s: got %q", what, got)
		}
	}
}

func evictionOf(name string, at metav1.Time) Move {
	return Move{
		Time: at, Object: Object{"apps/v1", "Deployment", "shop", name}, Type: TypeEviction, Reason: "TaintUntolerated",
		Clusters: []string{"one"},
	}
}

func keeper(c client.Client) *Keeper {
	return &Keeper{client: c, reader: c, scheme: fleetscheme.Scheme(), now: func() time.Time { return today },
		wake: make(chan struct{}, 1)}
}

func newFleet() client.Client {
	return fake.NewClientBuilder().WithScheme(fleetscheme.Scheme()).Build()
}

// written has a process that leads from now on write what it has seen.
func written(t *testing.T, c client.Client, moves ...Move) {
	t.Helper()
	k := keeper(c)
	k.see(moves...)
	if _, err := k.write(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, c client.Client, now time.Time) []Move {
	t.Helper()
	moves, err := Read(t.Context(), c, now)
	if err != nil {
		t.Fatal(err)
	}
	return moves
}

// Moves outlast the process and are kept for days, each once, whoever leads.
func TestMovesAreKept(t *testing.T) {
	c := newFleet()
	first, second := evictionOf("a", ago(2*time.Hour)), evictionOf("b", ago(time.Hour))
	written(t, c, first)
	written(t, c, first, second) // Another one saw both.
	again := evictionOf("b", ago(30*time.Minute))
	written(t, c, again) // The same words within the hour.
	if got := read(t, c, today); len(got) != 2 || got[0].Object.Name != "a" || got[1].Object.Name != "b" {
		t.Errorf("got %+v", got)
	}
	if got := read(t, c, today.Add(Age-90*time.Minute)); len(got) != 1 {
		t.Errorf("later: %+v", got)
	}
}

// However much moves, what is kept is bounded, by number, size and age; the newest stay.
func TestMovesAreBounded(t *testing.T) {
	c := newFleet()
	var many []Move
	for i := range Most + 250 {
		m := evictionOf(fmt.Sprintf("o%04d", i), ago(time.Hour))
		m.Message = strings.Repeat("ü", 5000)
		m.Clusters = slices.Repeat([]string{strings.Repeat("c", 60)}, 100)
		many = append(many, m)
	}
	for part := range slices.Chunk(many, 70) {
		written(t, c, part...)
	}
	got := read(t, c, today)
	if len(got) > Most || len(got) < Most-movesInPage || got[len(got)-1].Object.Name != many[len(many)-1].Object.Name {
		t.Fatalf("%d are kept, to %s", len(got), got[len(got)-1].Object.Name)
	}
	list := &corev1.ConfigMapList{}
	if err := c.List(t.Context(), list); err != nil || len(list.Items) != pages {
		t.Fatalf("%d ConfigMaps (%v)", len(list.Items), err)
	}
	for i := range list.Items {
		if size := len(list.Items[i].Data[keyMoves]); size > 512<<10 {
			t.Errorf("%s has %d bytes", list.Items[i].Name, size)
		}
	}
	k := keeper(c)
	k.now = func() time.Time { return today.Add(Age) }
	if _, err := k.write(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := c.List(t.Context(), list); err != nil || len(list.Items) != 1 {
		t.Errorf("a week later there are %d ConfigMaps (%v)", len(list.Items), err)
	}
}

// Nobody who does not lead writes, and what waits for the lead is bounded.
func TestFollowersWait(t *testing.T) {
	k := keeper(newFleet())
	for i := range 3 * Most {
		k.see(evictionOf(fmt.Sprint(i), ago(0)))
	}
	if !k.NeedLeaderElection() || len(k.pending) != Most {
		t.Errorf("%d wait", len(k.pending))
	}
}

// A fleet that cannot be written to loses no move, and holds up nothing.
func TestMovesAreWrittenInTheEnd(t *testing.T) {
	refused := true
	c := interceptor.NewClient(newFleet().(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if refused {
				return errors.New("away")
			}
			return c.Create(ctx, o, options...)
		},
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		k, ended := keeper(c), make(chan error)
		go func() { ended <- k.Start(ctx) }()
		k.see(evictionOf("a", ago(0)))
		time.Sleep(time.Minute) // Of the bubble.
		if got := read(t, c, today); len(got) > 0 {
			t.Errorf("got %v", got)
		}
		refused = false
		time.Sleep(2 * writeAfter)
		if got := read(t, c, today); len(got) != 1 {
			t.Errorf("got %v", got)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// silent is a recorder that tells nobody.
type silent struct{ events.EventRecorder }

func (silent) Eventf(_, _ runtime.Object, _, _, _, _ string, _ ...any) {}

// Events of the fleet's controllers that say what became of an object are kept with their words; others are not.
func TestEventsAreKept(t *testing.T) {
	k := keeper(newFleet())
	r := recorder{silent{}, k}
	r.Eventf(decided(1, ago(0), "one"), nil, "Warning", "NowhereElse", "Evict", "%d clusters", 3)
	one := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	r.Eventf(one, nil, "Normal", "TaintsChanged", "Taint", "x")
	r.Eventf(one, nil, "Warning", "DeletionHeld", "Delete", "x")
	if len(k.pending) != 2 || k.pending[0].Object != (Object{"apps/v1", "Deployment", "shop", "web"}) ||
		k.pending[0].Message != "3 clusters" || k.pending[1].Object.Kind != "Cluster" {
		t.Errorf("got %+v", k.pending)
	}
}

// What somebody put in the place of a ConfigMap is no move, and does not keep others from being kept.
func TestAttackConfigMapsOfMoves(t *testing.T) {
	c := newFleet()
	for name, data := range map[string]map[string]string{
		"fleet-moves-0": {keyNumber: "0", keyMoves: "<script>"}, "fleet-moves-1": {keyNumber: "-9", keyMoves: "[]"},
		"fleet-moves-2": {keyNumber: "3", keyMoves: "[]"}, "other": {keyNumber: "0", keyMoves: "[{}]"},
		"fleet-moves-3": {keyNumber: "3", keyMoves: "[" + strings.Repeat("{},", 1000) + "{}]"},
	} {
		err := c.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, Labels: map[string]string{Label: "true"}},
			Data:       data,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, c, today); len(got) > 0 {
		t.Errorf("got %v", got)
	}
	written(t, c, evictionOf("a", ago(0)))
	if got := read(t, c, today); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}
