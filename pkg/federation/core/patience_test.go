package core

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// newcomer is a cluster of which nothing is known, and which is waited for until so many seconds after noon.
func newcomer(name string, seconds int, change ...func(*Cluster)) Cluster {
	c := Cluster{Name: name, AwaitedUntil: noon.Add(time.Duration(seconds) * time.Second)}
	for _, f := range change {
		f(&c)
	}
	return c
}

// patient waits at noon for a minute at most.
var patient = Patience{Now: noon, Until: noon.Add(time.Minute)}

// twoTerms prefers m1 to m2.
func twoTerms() Placement {
	return Placement{Terms: []Term{
		{Name: "first", Affinity: Affinity{Names: []string{"m1"}}},
		{Name: "second", Affinity: Affinity{Names: []string{"m2"}}},
	}}
}

func divided(strategy Strategy, terms ...Term) Placement {
	return Placement{Strategy: strategy, Terms: terms}
}

func TestDecisionsWaitForClustersOfWhichNothingIsKnown(t *testing.T) {
	known, weighing := []Cluster{newcomer("m1", 30), member("m2", withRoom(9))}, func(p *Placement) {
		p.Weights = []Weight{{Affinity: Affinity{Names: []string{"m2"}}, Weight: 1}}
	}
	onlyM2, eitherOf := naming("m2"), naming("m1", "m2")
	withWeights := divided(StaticWeight)
	weighing(&withWeights)
	tests := map[string]struct {
		clusters []Cluster
		p        Placement
		change   func(*Binding)
		waits    bool
	}{
		"an affinity before another":       {known, twoTerms(), nil, true},
		"an affinity behind one that fits": {[]Cluster{member("m1"), newcomer("m2", 30)}, twoTerms(), nil, false},
		"the affinity has another cluster": {
			known, Placement{Terms: append(eitherOf, naming("m3")...)}, nil, false,
		},
		"nothing else fits":            {known[:1], Placement{}, nil, true},
		"not named":                    {known, divided(DynamicWeight, onlyM2...), nil, false},
		"duplicated beside":            {known, Placement{}, nil, false},
		"divided by weights":           {known, divided(StaticWeight), nil, true},
		"divided by weights of others": {known, withWeights, nil, false},
		"divided by room":              {known, divided(DynamicWeight), nil, true},
		"divided over few":             {known, divided(Aggregated), nil, true},
		"divided evenly":               {known, divided(Even), nil, true},
		"nothing to divide":            {known, divided(Even), func(b *Binding) { b.Workload = false }, false},
		"a constraint chooses": {
			known, Placement{Spread: []SpreadConstraint{spreadOver(FieldCluster, 1, 1)}}, nil, true,
		},
		"a group that it cannot be in": {
			[]Cluster{newcomer("m1", 30), member("m2", inRegion("eu"))},
			Placement{Spread: []SpreadConstraint{spreadOver(FieldRegion, 1, 1), spreadOver(FieldCluster, 1, 1)}},
			nil, false,
		},
		"overflow": {
			[]Cluster{member("m2", withRoom(9)), newcomer("m1", 30)},
			divided(DynamicWeight, Term{
				Affinity: Affinity{Names: []string{"m2"}}, Overflow: []Affinity{{Names: []string{"m1"}}},
			}), nil, true,
		},
		"tainted by people": {
			[]Cluster{newcomer("m1", 30, tainted(corev1.TaintEffectNoSchedule)), member("m2")}, twoTerms(), nil, false,
		},
		"apart from others": {known, twoTerms(), func(b *Binding) { b.Apart = []string{"m1"} }, false},
		"being evicted":     {known, twoTerms(), func(b *Binding) { b.Evicted = []string{"m1"} }, false},
		"leaving": {
			[]Cluster{newcomer("m1", 30, func(c *Cluster) { c.Deleting = true }), member("m2")}, twoTerms(), nil, false,
		},
		"its time is over":        {[]Cluster{newcomer("m1", 0), member("m2")}, twoTerms(), nil, false},
		"its time is nearly over": {[]Cluster{newcomer("m1", 1), member("m2")}, twoTerms(), nil, true},
		"no patience":             {known, twoTerms(), func(b *Binding) { b.Patience = Patience{} }, false},
		"patience is over":        {known, twoTerms(), func(b *Binding) { b.Patience.Until = noon }, false},
	}
	for name, tc := range tests {
		b := workload(2, tc.p)
		b.Patience = patient
		if tc.change != nil {
			tc.change(&b)
		}
		d := Decide(NewSnapshot(tc.clusters), b)
		if waits := d.Failure != nil && d.Failure.Kind == Waiting; waits != tc.waits {
			t.Errorf("%s: waits %v: %s", name, waits, d.Explain())
		}
		if d.Failure == nil && text(d.Targets) == "" {
			t.Errorf("%s: it neither waits nor has a place", name)
		}
	}
}

func TestWaitingSaysForWhomAndUntilWhen(t *testing.T) {
	b := workload(2, divided(StaticWeight))
	b.Patience, b.Previous = patient, []Target{{"m9", 2}}
	d := Decide(NewSnapshot([]Cluster{newcomer("m1", 30), newcomer("m3", 40), member("m2"), newcomer("m4", -1)}), b)
	if d.Failure == nil || !d.Failure.Until.Equal(noon.Add(40*time.Second)) || text(d.Targets) != "m9:2" {
		t.Errorf("got %+v, %s", d.Failure, text(d.Targets))
	}
	if got := d.Explain(); got != "nothing is known of m1, m3 yet: waiting until 2026-05-04T12:00:40Z; "+
		"m4: nothing is known of the cluster yet" {
		t.Errorf("got %q", got)
	}
	if got := reasonOf(d, "m1"); got.Code != NotKnownYet || got.Message != "nothing is known of the cluster yet" {
		t.Errorf("got %+v", got)
	}
	b.Patience.Until = noon.Add(10 * time.Second)
	if d := Decide(NewSnapshot([]Cluster{newcomer("m1", 30), member("m2")}), b); d.Failure == nil ||
		!d.Failure.Until.Equal(b.Patience.Until) {
		t.Errorf("it has 10 seconds: %s", d.Explain())
	}
}

// The binding's own patience bounds the whole wait, however many clusters come meanwhile.
func TestClustersThatKeepComingHoldNothingForEver(t *testing.T) {
	for second := range 120 {
		b := workload(2, divided(DynamicWeight))
		b.Patience = Patience{Now: noon.Add(time.Duration(second) * time.Second), Until: noon.Add(30 * time.Second)}
		d := Decide(NewSnapshot([]Cluster{newcomer("m1", second+30), member("m2", withRoom(9))}), b)
		if waits := d.Failure != nil; waits != (second < 30) {
			t.Fatalf("after %d seconds: %s", second, d.Explain())
		}
	}
}

// An affinity that fails with all that is known is told before the one that waits.
func TestWaitingTellsOfTheAffinitiesBefore(t *testing.T) {
	p := twoTerms()
	b := workload(2, p)
	b.Patience = patient
	d := Decide(NewSnapshot([]Cluster{{Name: "m1"}, newcomer("m2", 30)}), b)
	if len(d.Before) != 1 || d.Failure == nil || d.Failure.Kind != Waiting ||
		!strings.HasPrefix(d.Explain(), "affinity first: no cluster fits: 0 of 2; nothing is known of m2 yet: ") {
		t.Errorf("got %s", d.Explain())
	}
}

// Nothing that is known of a cluster meanwhile has a part in decisions, and what it has it keeps.
func TestUnknownClustersGetNothingNew(t *testing.T) {
	c := newcomer("m1", -100)
	c.APIs = NewAPIs(deployment)
	b := workload(2, Placement{})
	if d := Decide(NewSnapshot([]Cluster{c}), b); reasonOf(d, "m1").Code != NotKnownYet {
		t.Errorf("got %s", d.Explain())
	}
	b.Previous = []Target{{"m1", 2}}
	if d := Decide(NewSnapshot([]Cluster{c}), b); text(d.Targets) != "m1:2" {
		t.Errorf("got %s", d.Explain())
	}
}
