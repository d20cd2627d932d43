package core

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// The rows of pkg/scheduler/framework/plugins/*/*_test.go: which clusters may take an object.
func TestGoldenFilters(t *testing.T) {
	has := []Target{{"m1", 1}}
	tests := []struct {
		origin  string
		cluster Cluster
		change  func(*Binding)
		want    ReasonCode
	}{
		{"APIEnablement: API is enabled", member("m1"), nil, Fits},
		{"APIEnablement: API is not enabled", Cluster{Name: "m1"}, nil, APINotServed},
		// v1.12.0 passes only when the condition CompleteAPIEnablements isn't True.
		{"APIEnablement: cluster in target list", Cluster{Name: "m1"}, func(b *Binding) { b.Previous = has }, Fits},
		{
			"TaintToleration: in target list", member("m1", tainted(corev1.TaintEffectNoSchedule)),
			func(b *Binding) { b.Previous = has }, Fits,
		},
		{"TaintToleration: no taints", member("m1"), nil, Fits},
		{"TaintToleration: tolerated", member("m1", tainted(corev1.TaintEffectNoSchedule)), func(b *Binding) {
			b.Placement.Tolerations = []corev1.Toleration{
				{Key: "down", Operator: corev1.TolerationOpEqual, Effect: corev1.TaintEffectNoSchedule},
			}
		}, Fits},
		{"TaintToleration: untolerated", member("m1", tainted(corev1.TaintEffectNoSchedule)), nil, TaintNotTolerated},
		{
			"ClusterEviction: in eviction tasks", member("m1"), func(b *Binding) { b.Evicted = []string{"m1"} },
			BeingEvicted,
		},
		{"ClusterEviction: not in eviction tasks", member("m1"), func(b *Binding) { b.Evicted = []string{"m2"} }, Fits},
		{
			"SpreadConstraint: provider present", member("m1", func(c *Cluster) { c.Provider = "p" }),
			spreading(FieldProvider), Fits,
		},
		{"SpreadConstraint: provider missing", member("m1"), spreading(FieldProvider), PropertyMissing},
		{"SpreadConstraint: region present", member("m1", inRegion("r")), spreading(FieldRegion), Fits},
		{"SpreadConstraint: region missing", member("m1"), spreading(FieldRegion), PropertyMissing},
		{
			"SpreadConstraint: zones present", member("m1", func(c *Cluster) { c.Zones = []string{"z"} }),
			spreading(FieldZone), Fits,
		},
		{"SpreadConstraint: zones missing", member("m1"), spreading(FieldZone), PropertyMissing},
		{
			"a cluster that is being deleted", member("m1", func(c *Cluster) { c.Deleting = true }),
			func(b *Binding) { b.Previous = has }, ClusterDeleting,
		},
	}
	for _, tc := range tests {
		b := workload(1, Placement{})
		if tc.change != nil {
			tc.change(&b)
		}
		d := Decide(NewSnapshot([]Cluster{tc.cluster}), b)
		if got := reasonOf(d, "m1").Code; got != tc.want {
			t.Errorf("%s: got %q (%s), want %q", tc.origin, got, d.Explain(), tc.want)
		}
	}
}

// spreading groups by a property, beside clusters, so that both versions take it.
func spreading(field Field) func(*Binding) {
	return func(b *Binding) {
		b.Placement.Spread = []SpreadConstraint{spreadOver(field, 1, 1), spreadOver(FieldCluster, 1, 1)}
	}
}

// pkg/scheduler/framework/plugins/clusterlocality/cluster_locality_test.go: a cluster that has the object is preferred.
func TestGoldenLocality(t *testing.T) {
	s := roomFor(t, "m1:9 m2:5")
	for previous, want := range map[string]string{"": "m1:1", "m2:1": "m2:1", "m3:1": "m1:1"} {
		b := workload(1, Placement{Spread: []SpreadConstraint{spreadOver(FieldCluster, 1, 1)}})
		b.Previous = numbersOf(t, previous)
		if got := outcomeOf(Decide(s, b)); got != want {
			t.Errorf("after %q: got %s, want %s", previous, got, want)
		}
	}
}

// The rows of pkg/util/selector_test.go, TestClusterMatches and Test_matchZones. Operators and keys that a policy may
// not have are refused where policies are translated.
func TestGoldenAffinity(t *testing.T) {
	full := Cluster{
		Name: "cluster1", Labels: labels.Set{"foo": "bar"}, Zones: []string{"zone1", "zone2", "zone3"},
		Region: "region1", Provider: "provider1",
	}
	bare := Cluster{Name: "cluster1"}
	own, other := []string{"cluster1"}, []string{"cluster2"}
	bar, unmatched := labels.Set{"foo": "bar"}.AsSelector(), labels.Set{"foo": "unmatched"}.AsSelector()
	in := func(f Field, values ...string) []FieldRequirement {
		return []FieldRequirement{{Field: f, Values: values}}
	}
	notIn := func(f Field, values ...string) []FieldRequirement {
		return []FieldRequirement{{Field: f, Not: true, Values: values}}
	}
	both := append(in(FieldZone, full.Zones...), in(FieldRegion, "region1")...)
	tests := []struct {
		name     string
		cluster  Cluster
		affinity Affinity
		want     bool
	}{
		{"excluded and named", full, Affinity{Exclude: own, Names: own}, false},
		{"excluded and label selector", full, Affinity{Exclude: own, Labels: bar}, false},
		{"excluded and field selector", full, Affinity{Exclude: own, Fields: in(FieldZone, full.Zones...)}, false},
		{"names", full, Affinity{Names: own}, true},
		{"names not matched", full, Affinity{Names: other}, false},
		{"names and labels", full, Affinity{Names: own, Labels: bar}, true},
		{"names and labels not matched", full, Affinity{Names: own, Labels: unmatched}, false},
		{"names, zone and region", full, Affinity{Names: own, Fields: both}, true},
		{"names and provider", full, Affinity{Names: own, Fields: in(FieldProvider, "provider1")}, true},
		{"names and region", full, Affinity{Names: own, Fields: in(FieldRegion, "region1")}, true},
		{"names and not these zones", full, Affinity{Names: own, Fields: notIn(FieldZone, full.Zones...)}, false},
		{"names and not this provider", full, Affinity{Names: own, Fields: notIn(FieldProvider, "provider1")}, false},
		{"names and not this region", full, Affinity{Names: own, Fields: notIn(FieldRegion, "region1")}, false},
		{"labels and zone", full, Affinity{Labels: bar, Fields: in(FieldZone, full.Zones...)}, true},
		{"labels and provider", full, Affinity{Labels: bar, Fields: in(FieldProvider, "provider1")}, true},
		{"labels and region", full, Affinity{Labels: bar, Fields: in(FieldRegion, "region1")}, true},
		{"labels and not these zones", full, Affinity{Labels: bar, Fields: notIn(FieldZone, full.Zones...)}, false},
		{"labels and not this provider", full, Affinity{Labels: bar, Fields: notIn(FieldProvider, "provider1")}, false},
		{"labels and not this region", full, Affinity{Labels: bar, Fields: notIn(FieldRegion, "region1")}, false},
		{"labels", full, Affinity{Labels: bar}, true},
		{"labels not matched", full, Affinity{Labels: unmatched}, false},
		{"nothing given", full, Affinity{}, true},
		{"one of the zones", full, Affinity{Fields: in(FieldZone, "zone2")}, true},
		{"zones, and one it has not", full, Affinity{Fields: in(FieldZone, "zone1", "zone4")}, true},
		{"a zone it has not", full, Affinity{Fields: in(FieldZone, "zone4")}, false},
		{"not a zone it has not", full, Affinity{Fields: notIn(FieldZone, "zone4")}, true},
		{"no zones, In", bare, Affinity{Fields: in(FieldZone, "zone1")}, false},
		{"no zones, NotIn", bare, Affinity{Fields: notIn(FieldZone, "zone1")}, true},
		{"no region, NotIn", bare, Affinity{Fields: notIn(FieldRegion, "region1")}, true},
		{"another region", full, Affinity{Fields: in(FieldRegion, "region2")}, false},
		{"another provider", full, Affinity{Fields: in(FieldProvider, "provider2")}, false},
		{"a key that no cluster has", full, Affinity{Fields: in("other", "value")}, false},
		{
			"names, labels and another zone", full, Affinity{Names: own, Labels: bar, Fields: in(FieldZone, "zone4")},
			false,
		},
		{"another name, labels and zones", full, Affinity{Names: other, Labels: bar, Fields: both}, false},
		{"names, other labels and zones", full, Affinity{Names: own, Labels: unmatched, Fields: both}, false},
		{"names, labels and zones", full, Affinity{Names: own, Labels: bar, Fields: both}, true},
	}
	for _, tc := range tests {
		if got := tc.affinity.Matches(&tc.cluster); got != tc.want {
			t.Errorf("%s: got %v", tc.name, got)
		}
	}
}

// Which affinity term is used: pkg/scheduler/scheduler.go, scheduleResourceBindingWithClusterAffinities. A name that is
// observed but unknown begins at the first; later terms are never left for earlier ones; the first failure counts.
func TestGoldenTerms(t *testing.T) {
	terms := func(members ...string) []Term {
		var result []Term
		for i, m := range members {
			result = append(result, Term{
				Name: []string{"first", "second", "third"}[i], Affinity: Affinity{Names: []string{m}},
			})
		}
		return result
	}
	s := roomFor(t, "m1:1 m2:5")
	tests := []struct {
		name     string
		terms    []Term
		observed string
		previous string
		replicas int32
		want     string
		term     string
	}{
		{"nothing observed", terms("m1", "m2"), "", "", 1, "m1:1", "first"},
		{"an unknown one observed", terms("m1", "m2"), "gone", "", 1, "m1:1", "first"},
		{"never back to an earlier one", terms("m1", "m2"), "second", "m2:1", 1, "m2:1", "second"},
		{"no fit, so on", terms("m9", "m2"), "", "", 1, "m2:1", "second"},
		{"no room, so on", terms("m1", "m2"), "", "", 4, "m2:4", "second"},
		{"none fits: withdrawn", terms("m8", "m9"), "", "m2:1", 1, "no fit", "first"},
		{
			"the first lacks room, the second doesn't fit: what was stays", terms("m1", "m9"), "", "m1:1", 4, "no room",
			"first",
		},
		{
			"the first doesn't fit, the second lacks room: withdrawn", terms("m9", "m2"), "", "m2:1", 8, "no fit",
			"first",
		},
	}
	for _, tc := range tests {
		b := workload(tc.replicas, Placement{Terms: tc.terms, Strategy: DynamicWeight})
		b.PreviousTerm, b.Previous = tc.observed, numbersOf(t, tc.previous)
		d := Decide(s, b)
		if got := outcomeOf(d); got != tc.want || d.Term != tc.term {
			t.Errorf("%s: got %s by %q, want %s by %q", tc.name, got, d.Term, tc.want, tc.term)
		}
		kept := text(d.Targets) == tc.previous
		if d.Failure != nil && kept != (d.Failure.Kind == NoRoom) {
			t.Errorf("%s: it has %q after %q", tc.name, text(d.Targets), tc.previous)
		}
	}
}
