package reservations

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

var deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// roomFor gives a cluster with room for that many pods, of which some are taken.
func roomFor(name string, pods, taken int64) core.Cluster {
	return core.Cluster{
		Name: name, APIs: core.NewAPIs(deployments),
		Room: &core.Room{Free: core.Resources{Pods: pods - taken, CPU: (pods - taken) * 100}},
	}
}

func showing(surveys Surveys, clusters ...core.Cluster) func() (core.Snapshot, Surveys, error) {
	return func() (core.Snapshot, Surveys, error) { return core.NewSnapshot(clusters), surveys, nil }
}

func wants(replicas int32, previous ...core.Target) core.Binding {
	return core.Binding{
		Kind: deployments, UID: "uid", Workload: true, Replicas: replicas, Request: core.Resources{CPU: 100},
		Placement: core.Placement{Strategy: core.Aggregated}, Previous: previous,
	}
}

// lapse in tests.
const lapse = 10 * time.Minute

// since gives surveys of cluster a that were begun then; it has always been ready.
func since(begun time.Time) Surveys { return Surveys{"a": {Begun: begun}} }

func running(cluster string, replicas int32) map[string]Report {
	return map[string]Report{cluster: {Running: replicas}}
}

func key(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }

// clock goes on by a second whenever it is asked.
type clock struct{ at time.Time }

func (c *clock) now() time.Time {
	c.at = c.at.Add(time.Second)
	return c.at
}

func mustDecide(t *testing.T, l *Reservations, name string, replicas int32,
	view func() (core.Snapshot, Surveys, error)) core.Decision {
	t.Helper()
	decision, err := l.Decide(key(name), 0, wants(replicas), view)
	if err != nil {
		t.Fatal(err)
	}
	return decision
}

func promisedPods(t *testing.T, l *Reservations, cluster string, want int64) {
	t.Helper()
	if got := l.Promised(cluster).Pods; got != want {
		t.Fatalf("%d pods are promised in %s, want %d", got, cluster, want)
	}
}

func TestThousandBindingsWantTheLastCluster(t *testing.T) {
	const room = 137
	l := New(new(clock).now, lapse)
	view := showing(nil, roomFor("last", room, 0))
	placed := 0
	for i := range 1000 {
		d := mustDecide(t, l, fmt.Sprint(i), 1, view)
		if d.Failure == nil {
			placed++
			continue
		}
		if d.Failure.Kind != core.NoRoom || d.Failure.Message == "" {
			t.Fatalf("binding %d was told %+v, want that there is no room", i, d.Failure)
		}
	}
	if placed != room {
		t.Fatalf("%d replicas were promised, there is room for %d", placed, room)
	}
	promisedPods(t, l, "last", room)
	if got := l.Promised("last").CPU; got != room*100 {
		t.Fatalf("%d millicores are promised, want %d", got, room*100)
	}
}

func TestWithdrawnDecisionGivesBack(t *testing.T) {
	l := New(new(clock).now, lapse)
	view := showing(nil, roomFor("a", 10, 0))
	mustDecide(t, l, "x", 10, view)
	if d := mustDecide(t, l, "y", 1, view); d.Failure == nil {
		t.Fatal("the same room was promised twice")
	}
	l.Withdraw(key("x"))
	if d := mustDecide(t, l, "y", 10, view); d.Failure != nil {
		t.Fatalf("the room was not given back: %v", d.Failure)
	}
}

func TestPromiseEndsWithTheSurveyThatShowsThePods(t *testing.T) {
	clock := &clock{at: time.Unix(1000, 0)}
	l := New(clock.now, lapse)
	mustDecide(t, l, "x", 6, showing(nil, roomFor("a", 10, 0)))
	l.Written(key("x"), 1)
	promisedPods(t, l, "a", 6)
	seen := Observation{Generation: 1, Request: core.Resources{CPU: 100}, Assigned: map[string]int32{"a": 6}}
	l.Observe(key("x"), seen)
	promisedPods(t, l, "a", 6)
	early := clock.now()
	seen.Reports = running("a", 4)
	l.Observe(key("x"), seen)
	late := clock.now()
	mustDecide(t, l, "other", 1, showing(since(early), roomFor("a", 10, 0)))
	promisedPods(t, l, "a", 7)
	mustDecide(t, l, "other", 1, showing(since(late), roomFor("a", 10, 4)))
	promisedPods(t, l, "a", 3)
	seen.Reports = running("a", 1)
	l.Observe(key("x"), seen)
	promisedPods(t, l, "a", 6)
	l.Forget(key("x"))
	l.Forget(key("other"))
	promisedPods(t, l, "a", 0)
	if len(l.entries)+len(l.in)+len(l.promised.of)+len(l.idle.of) > 0 {
		t.Fatalf("something is left: %+v", l)
	}
}

func TestDecisionCountsUntilTheAPIShowsIt(t *testing.T) {
	l := New(new(clock).now, lapse)
	l.Observe(key("x"), Observation{Generation: 1, Assigned: map[string]int32{"a": 2}})
	if _, err := l.Decide(key("x"), 1, wants(5, core.Target{Cluster: "a", Replicas: 2}),
		showing(nil, roomFor("a", 10, 0))); err != nil {
		t.Fatal(err)
	}
	promisedPods(t, l, "a", 5)
	l.Observe(key("x"), Observation{Generation: 1, Assigned: map[string]int32{"a": 2}})
	promisedPods(t, l, "a", 5)
	l.Written(key("x"), 2)
	promisedPods(t, l, "a", 5)
	l.Observe(key("x"), Observation{Generation: 2, Assigned: map[string]int32{"a": 3}})
	promisedPods(t, l, "a", 3)
}

func TestDecisionWithoutAnswerIsInDoubt(t *testing.T) {
	clock := &clock{at: time.Unix(1000, 0)}
	l := New(clock.now, lapse)
	view := showing(nil, roomFor("a", 10, 0))
	mustDecide(t, l, "x", 8, view)
	mustDecide(t, l, "x", 3, view)
	promisedPods(t, l, "a", 8)
	l.Withdraw(key("x"))
	promisedPods(t, l, "a", 8)
	clock.at = clock.at.Add(2 * doubtLasts)
	l.Observe(key("x"), Observation{})
	promisedPods(t, l, "a", 0)
	mustDecide(t, l, "x", 8, view)
	mustDecide(t, l, "x", 3, view)
	l.Observe(key("x"), Observation{Generation: 1, Assigned: map[string]int32{"a": 3}})
	l.Withdraw(key("x"))
	promisedPods(t, l, "a", 3)
}

func TestAfterRestartReportsCountFromTheNextSurveyOn(t *testing.T) {
	clock := &clock{at: time.Unix(1000, 0)}
	before := clock.now()
	l := New(clock.now, lapse)
	l.Observe(key("x"), Observation{Generation: 3, Assigned: map[string]int32{"a": 5}, Reports: running("a", 5)})
	if d := mustDecide(t, l, "y", 6, showing(since(before), roomFor("a", 10, 0))); d.Failure == nil {
		t.Fatal("a survey from before the start was taken to show what was reported")
	}
	l.Withdraw(key("y"))
	if d := mustDecide(t, l, "y", 5, showing(since(clock.now()), roomFor("a", 10, 5))); d.Failure != nil {
		t.Fatalf("room that is free was not promised: %v", d.Failure)
	}
}

func TestOthersThanWorkloadsPromiseNothing(t *testing.T) {
	l := New(new(clock).now, lapse)
	b := core.Binding{Kind: deployments, UID: "uid"}
	if _, err := l.Decide(key("config"), 0, b, showing(nil, roomFor("a", 10, 0))); err != nil {
		t.Fatal(err)
	}
	if got := l.Promised("a"); !isNothing(got) {
		t.Fatalf("an object without replicas was promised %v", got)
	}
}

// Explanations are made after the lock is given up, while others decide.
func TestDecisionsExplainThemselvesByWhatTheySaw(t *testing.T) {
	l := New(new(clock).now, lapse)
	view := showing(nil, roomFor("one", 10, 0), roomFor("two", 10, 0))
	mustDecide(t, l, "first", 3, view)
	decision := mustDecide(t, l, "second", 4, view)
	before := decision.Candidates()
	mustDecide(t, l, "third", 5, view)
	l.Withdraw(key("first"))
	if after := decision.Candidates(); !slices.Equal(before, after) {
		t.Errorf("the candidates were %v, and are %v since others decided", before, after)
	}
}
