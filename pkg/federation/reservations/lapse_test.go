package reservations

import (
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

// lapsing is a reservations that has heard of binding x, which has five replicas in cluster a, whose last survey shows
// two of them.
type lapsing struct {
	*Reservations
	t     *testing.T
	clock *clock
	seen  Observation
	ready time.Time
}

func newLapsing(t *testing.T) *lapsing {
	l := &lapsing{t: t, clock: &clock{at: time.Unix(1000, 0)}, seen: Observation{
		Generation: 1, Request: core.Resources{CPU: 100}, Assigned: map[string]int32{"a": 5},
	}}
	l.Reservations = New(l.clock.now, lapse)
	l.hear(Report{Running: 2, Settled: 5, Generation: 1})
	l.survey()
	promisedPods(t, l.Reservations, "a", 3)
	return l
}

func (l *lapsing) hear(report Report) {
	l.seen.Reports = map[string]Report{"a": report}
	l.Observe(key("x"), l.seen)
}

// survey the cluster now, and let the reservations learn of it.
func (l *lapsing) survey() {
	l.t.Helper()
	surveys := Surveys{"a": {Begun: l.clock.now(), Ready: l.ready}}
	mustDecide(l.t, l.Reservations, "nobody", 0, showing(surveys, roomFor("a", 10, 2)))
	l.Withdraw(key("nobody"))
}

func (l *lapsing) later(duration time.Duration) {
	l.clock.at = l.clock.at.Add(duration)
	l.survey()
}

func TestWhatAMemberDoesNotRunLapses(t *testing.T) {
	l := newLapsing(t)
	l.later(lapse - time.Minute)
	promisedPods(t, l.Reservations, "a", 3)
	l.later(2 * time.Minute)
	promisedPods(t, l.Reservations, "a", 0)
	if d := mustDecide(t, l.Reservations, "other", 8, showing(nil, roomFor("a", 10, 2))); d.Failure != nil {
		t.Errorf("others do not get the room: %v", d.Failure)
	}
}

func TestPromiseIsKeptAsLongAsSomethingMayCome(t *testing.T) {
	for name, report := range map[string]Report{
		"its controllers have not seen it": {Running: 2, Generation: 1},
		"they have seen fewer":             {Running: 2, Settled: 3, Generation: 1},
	} {
		l := newLapsing(t)
		l.hear(report)
		l.later(10 * lapse)
		if got, want := l.Promised("a").Pods, int64(5-max(report.Running, report.Settled)); got != want {
			t.Errorf("%s: %d pods are promised, want %d", name, got, want)
		}
	}
}

func TestEveryChangeBeginsTheTimeAnew(t *testing.T) {
	for name, report := range map[string]Report{
		"more run":           {Running: 3, Settled: 5, Generation: 1},
		"fewer run":          {Running: 1, Settled: 5, Generation: 1},
		"the object changed": {Running: 2, Settled: 5, Generation: 2},
	} {
		l := newLapsing(t)
		l.later(lapse - time.Minute)
		l.hear(report)
		l.later(2 * time.Minute)
		if got, want := l.Promised("a").Pods, int64(5-report.Running); got != want {
			t.Errorf("%s: %d pods are promised, want %d", name, got, want)
		}
		l.later(lapse)
		if got := l.Promised("a").Pods; got != 0 {
			t.Errorf("%s: %d pods are promised in the end", name, got)
		}
	}
}

func TestPromiseComesBackWhenSomethingMayComeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		report Report
		want   int64
	}{
		"nothing new":                    {Report{Running: 2, Settled: 5, Generation: 1}, 0},
		"more run, as no survey knows":   {Report{Running: 3, Settled: 5, Generation: 1}, 3},
		"fewer run, and may come back":   {Report{Running: 1, Settled: 5, Generation: 1}, 1},
		"the object changed":             {Report{Running: 2, Settled: 5, Generation: 2}, 3},
		"the member is told again":       {Report{Running: 2, Generation: 1}, 3},
		"more pods than it has replicas": {Report{Running: 9, Settled: 5, Generation: 1}, 3},
	} {
		l := newLapsing(t)
		l.later(2 * lapse)
		promisedPods(t, l.Reservations, "a", 0)
		l.hear(c.report)
		if got := l.Promised("a").Pods; got != c.want {
			t.Errorf("%s: %d pods are promised, want %d", name, got, c.want)
		}
	}
}

func TestSilenceOfAMemberThatWasAwayMeansNothing(t *testing.T) {
	l := newLapsing(t)
	l.clock.at = l.clock.at.Add(2 * lapse)
	l.ready = l.clock.now()
	l.survey()
	promisedPods(t, l.Reservations, "a", 3)
	l.later(2 * lapse)
	promisedPods(t, l.Reservations, "a", 0)
}

func TestReplicasThatAreAddedAreOnTheirWay(t *testing.T) {
	l := newLapsing(t)
	l.later(2 * lapse)
	view := showing(nil, roomFor("a", 10, 2))
	if _, err := l.Decide(key("x"), 1, wants(8, core.Target{Cluster: "a", Replicas: 5}), view); err != nil {
		t.Fatal(err)
	}
	promisedPods(t, l.Reservations, "a", 3)
	l.later(2 * lapse)
	promisedPods(t, l.Reservations, "a", 3)
}

// What is scaled down and up again before the member was heard of gets new replicas, whatever was said of the old ones.
func TestReplicasThatWereNotWantedForAWhileAreOnTheirWay(t *testing.T) {
	for name, report := range map[string]Report{
		"the old ones run":    {Running: 5, Settled: 5, Generation: 1},
		"the old ones do not": {Running: 0, Settled: 5, Generation: 1},
	} {
		l := newLapsing(t)
		l.hear(report)
		l.later(2 * lapse)
		promisedPods(t, l.Reservations, "a", 0)
		for generation, replicas := range []int32{2: 1, 3: 5} {
			if replicas > 0 {
				l.Observe(key("x"), Observation{
					Generation: int64(generation), Request: l.seen.Request, Assigned: map[string]int32{"a": replicas},
				})
			}
		}
		before := l.Promised("a").Pods
		l.later(time.Second)
		if after := l.Promised("a").Pods; before != 4 || after != 4 {
			t.Errorf("%s: %d pods are promised, %d after a survey, want 4", name, before, after)
		}
	}
}

// Kinds whose status has no numbers are all there when they are healthy, and are not forgotten when they aren't.
func TestNumberlessReports(t *testing.T) {
	l := newLapsing(t)
	l.hear(Report{Running: 5, Settled: 5})
	l.later(time.Second)
	promisedPods(t, l.Reservations, "a", 0)
	l.hear(Report{Numberless: true, Settled: 5})
	l.later(time.Second)
	promisedPods(t, l.Reservations, "a", 0)
	l.hear(Report{})
	promisedPods(t, l.Reservations, "a", 5)
	l.hear(Report{Numberless: true, Settled: 5})
	l.later(time.Second)
	promisedPods(t, l.Reservations, "a", 5)
	l.later(2 * lapse)
	promisedPods(t, l.Reservations, "a", 0)
	l.Forget(key("x"))
	if len(l.entries)+len(l.in)+len(l.promised.of)+len(l.idle.of) > 0 {
		t.Errorf("something is left: %+v", l.Reservations)
	}
}

// TestWhatDoesNotStartIsTold: who lacks room because of it sees it free in the cluster.
func TestWhatDoesNotStartIsTold(t *testing.T) {
	const told = "the clusters that fit have room for 5 of 8 replicas; room for 3 more is promised to replicas of " +
		"other objects that were sent there and do not start"
	explained := func(l *lapsing) string {
		d := mustDecide(t, l.Reservations, "other", 8, showing(nil, roomFor("a", 10, 2)))
		l.Withdraw(key("other"))
		return d.Explain()
	}
	l := newLapsing(t)
	if got := explained(l); got != told {
		t.Errorf("got %s, want %s", got, told)
	}
	for name, report := range map[string]Report{
		"its controllers have not seen it": {Running: 2, Generation: 1},
		"they may have started it":         {Numberless: true, Settled: 5, Generation: 1},
		"it runs, and is not surveyed yet": {Running: 5, Settled: 5, Generation: 1},
	} {
		l := newLapsing(t)
		l.hear(report)
		if got, want := explained(l), "the clusters that fit have room for 5 of 8 replicas"; got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	l.Forget(key("x"))
	if len(l.idle.of) > 0 {
		t.Errorf("something is left: %v", l.idle.of)
	}
}
