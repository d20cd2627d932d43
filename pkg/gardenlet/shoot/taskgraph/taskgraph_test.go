package taskgraph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/flow"
	"github.com/trellis-garden/trellis/pkg/operationgraph"
)

var errUnreachable = errors.New("the garden is away")

// garden is one that counts what is written, and can be away.
type garden struct {
	client.Client

	mu     sync.Mutex
	isAway bool
	writes []time.Time
	calls  int
}

func newGarden(objects ...client.Object) *garden {
	g := &garden{}
	write := func(do func() error) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.calls++
		if g.isAway {
			return errUnreachable
		}
		g.writes = append(g.writes, time.Now())
		return do()
	}
	g.Client = interceptor.NewClient(
		fake.NewClientBuilder().WithScheme(apis.GardenScheme()).WithObjects(objects...).Build(), interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				return write(func() error { return c.Create(ctx, o, opts...) })
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				return write(func() error { return c.Update(ctx, o, opts...) })
			},
		})
	return g
}

func (g *garden) away(is bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isAway = is
}

// graph is what the garden has been told.
func (g *garden) graph(t *testing.T) *operationgraph.Graph {
	t.Helper()
	configMap := &corev1.ConfigMap{}
	if err := g.Get(t.Context(), client.ObjectKeyFromObject(operationgraph.ConfigMap(shoot())), configMap); err != nil {
		t.Fatal(err)
	}
	graph, err := operationgraph.Read(configMap, shoot())
	if err != nil {
		t.Fatal(err)
	}
	return graph
}

func shoot() *gardencorev1beta1.Shoot {
	s := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{
		Namespace: "garden-demo", Name: "one", UID: "u1", Generation: 4,
	}}
	s.Status.ObservedGeneration = 4
	s.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: "Create", State: "Processing"}
	return s
}

// steps is a flow of tasks one after another, each of which takes a while.
func steps(t *testing.T, count int, each time.Duration, last error) *flow.Flow {
	t.Helper()
	g := flow.NewGraph("test")
	var before []flow.TaskID
	for i := range count {
		id := g.Add(flow.Task{Name: fmt.Sprintf("Step %d", i), Dependencies: before, SkipIf: i == 1,
			Fn: func(ctx context.Context) error {
				flow.Awaits(ctx, errors.New("time to pass"))
				time.Sleep(each)
				if i == count-1 {
					return last
				}
				return nil
			}})
		before = []flow.TaskID{id}
	}
	compiled, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func states(g *operationgraph.Graph) (states []operationgraph.State) {
	for _, task := range g.Tasks {
		states = append(states, task.State)
	}
	return states
}

func operate(t *testing.T, w *Writer, f *flow.Flow) error {
	t.Helper()
	try := w.Begin(t.Context(), shoot(), f)
	err := f.Run(t.Context(), flow.Options{Observer: try})
	try.End(err)
	return err
}

func TestAnOperationIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGarden()
		w, f := &Writer{Garden: g}, steps(t, 4, 10*time.Second, errors.New("broken"))
		go func() { _ = operate(t, w, f) }()
		time.Sleep(15 * time.Second)
		told := g.graph(t)
		want := []operationgraph.State{"Succeeded", "Skipped", "Running", "Pending"}
		if !slices.Equal(states(told), want) {
			t.Errorf("in the middle: %v", states(told))
		}
		if running := told.Tasks[2]; running.Error != "time to pass" || running.Started.IsZero() ||
			!running.Ended.IsZero() || !slices.Equal(running.After, []int{1}) {
			t.Errorf("what runs is told as %+v", running)
		}
		if !told.IsPresent(&shoot().Status) {
			t.Errorf("it is not of the present operation: %+v", told)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		told = g.graph(t)
		if last := told.Tasks[3]; last.State != operationgraph.Failed || last.Error != "broken" ||
			told.Ended.IsZero() || told.Error != "" || told.Tasks[2].Error != "" {
			t.Errorf("at the end: %+v", told)
		}
		if !w.IsIdle() {
			t.Error("it goes on writing")
		}
	})
}

// Many changes in a short time are few writes, and the last state is written at once.
func TestWritesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGarden()
		w := &Writer{Garden: g}
		began := time.Now()
		if err := operate(t, w, steps(t, 100, 50*time.Millisecond, nil)); err != nil {
			t.Fatal(err)
		}
		ended := time.Now()
		synctest.Wait()
		if last := g.writes[len(g.writes)-1]; !last.Equal(ended) || g.graph(t).Ended.IsZero() {
			t.Errorf("the end is told %s later: %+v", last.Sub(ended), g.graph(t))
		}
		for i, write := range g.writes[:len(g.writes)-1] {
			if i > 0 && write.Sub(g.writes[i-1]) < period {
				t.Errorf("write %d comes %s after the one before", i, write.Sub(g.writes[i-1]))
			}
		}
		if most := int(ended.Sub(began)/period) + 2; len(g.writes) > most {
			t.Errorf("%d writes in %s", len(g.writes), ended.Sub(began))
		}
		time.Sleep(time.Minute)
	})
}

// TestAttackGardenIsAway: an operation takes as long as always, whatever becomes of what is told of it, and nothing is
// tried for ever.
func TestAttackGardenIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGarden()
		g.away(true)
		w := &Writer{Garden: g}
		began := time.Now()
		if err := operate(t, w, steps(t, 4, time.Second, nil)); err != nil {
			t.Errorf("the operation fails: %v", err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("the operation takes %s", took)
		}
		time.Sleep(10 * time.Second)
		g.away(false)
		time.Sleep(longestPause)
		synctest.Wait()
		if g.graph(t).Ended.IsZero() || !w.IsIdle() {
			t.Errorf("what the garden has not heard is not told later: %+v", g.graph(t))
		}
		g.away(true)
		_ = operate(t, w, steps(t, 2, time.Second, nil))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if !w.IsIdle() || g.calls > 30 {
			t.Errorf("idle = %v after %d tries", w.IsIdle(), g.calls)
		}
	})
}

// TestAttackNameIsTaken: a ConfigMap of the name that is the user's stays as it is.
func TestAttackNameIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taken := operationgraph.ConfigMap(shoot())
		taken.Labels, taken.OwnerReferences, taken.Data = nil, nil, map[string]string{"notes": "mine"}
		g := newGarden(taken)
		w := &Writer{Garden: g}
		if err := operate(t, w, steps(t, 10, time.Second, nil)); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		now := &corev1.ConfigMap{}
		if err := g.Get(t.Context(), client.ObjectKeyFromObject(taken), now); err != nil ||
			now.Data["notes"] != "mine" || len(now.Data) != 1 || len(g.writes) > 0 {
			t.Errorf("it is %+v after %d writes, %v", now, len(g.writes), err)
		}
	})
}

// TestAttackNameIsTakenMeanwhile: the user replaces the ConfigMap while an operation runs.
func TestAttackNameIsTakenMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGarden()
		w, f := &Writer{Garden: g}, steps(t, 10, 2*time.Second, nil)
		go func() { _ = operate(t, w, f) }()
		time.Sleep(5 * time.Second)
		own := operationgraph.ConfigMap(shoot())
		if err := g.Delete(t.Context(), own); err != nil {
			t.Fatal(err)
		}
		own = operationgraph.ConfigMap(shoot())
		own.Labels, own.OwnerReferences, own.Data = nil, nil, map[string]string{"notes": "mine"}
		if err := g.Create(t.Context(), own); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		now := &corev1.ConfigMap{}
		if err := g.Get(t.Context(), client.ObjectKeyFromObject(own), now); err != nil || now.Data["notes"] != "mine" {
			t.Errorf("it is %+v, %v", now, err)
		}
	})
}

// What an earlier shoot of the name has left is taken over, with its owner.
func TestAnEarlierShoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		earlier := shoot()
		earlier.UID = "u0"
		g := newGarden(operationgraph.ConfigMap(earlier))
		_ = operate(t, &Writer{Garden: g}, steps(t, 2, time.Second, nil))
		time.Sleep(time.Minute)
		synctest.Wait()
		if told := g.graph(t); told.Ended.IsZero() {
			t.Errorf("got %+v", told)
		}
	})
}

// A try that fails before it has tasks takes the place of the one before, which still tells of its end.
func TestAttackTasksOfTheTryBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGarden()
		w, f := &Writer{Garden: g}, steps(t, 2, time.Second, errors.New("broken"))
		before := w.Begin(t.Context(), shoot(), f)
		time.Sleep(5 * time.Second)
		w.NotBegun(t.Context(), shoot(), errors.New("no such region"))
		before.Started("Step 0")
		before.End(errors.New("broken"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if told := g.graph(t); len(told.Tasks) > 0 || told.Error != "no such region" || told.Ended.IsZero() {
			t.Errorf("got %+v", told)
		}
	})
}

// What is left to tell of a shoot that goes is dropped.
func TestForgetting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGarden()
		g.away(true)
		w := &Writer{Garden: g}
		_ = operate(t, w, steps(t, 2, time.Second, nil))
		w.Forget(client.ObjectKeyFromObject(shoot()))
		time.Sleep(longestPause)
		g.away(false)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		err := g.Get(t.Context(), client.ObjectKeyFromObject(operationgraph.ConfigMap(shoot())), &corev1.ConfigMap{})
		if !apierrors.IsNotFound(err) || !w.IsIdle() {
			t.Errorf("idle = %v, %v", w.IsIdle(), err)
		}
	})
}

// Without a Writer nothing is told.
func TestNobodyTells(t *testing.T) {
	var w *Writer
	if err := operate(t, w, steps(t, 2, 0, nil)); err != nil {
		t.Error(err)
	}
	w.NotBegun(t.Context(), shoot(), errors.New("no"))
	w.Forget(client.ObjectKey{})
}
