package wake

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-garden/trellis/pkg/federation/core"
)

var (
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	widgets     = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
)

func cluster(name string, change ...func(*core.Cluster)) *core.Cluster {
	c := &core.Cluster{
		Name: name, Labels: labels.Set{}, APIs: core.NewAPIs(deployments),
		Room: &core.Room{Free: core.Resources{CPU: 1000}},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

// newcomer is a cluster of which nothing is known.
func newcomer(name string) *core.Cluster {
	return cluster(name, func(c *core.Cluster) { c.APIs, c.AwaitedUntil = nil, time.Unix(30, 0) })
}

func labelled(value string) func(*core.Cluster) {
	return func(c *core.Cluster) { c.Labels["zone"] = value }
}
func tainted(c *core.Cluster) {
	c.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}}
}
func roomier(c *core.Cluster) { c.Room = &core.Room{Free: core.Resources{CPU: 2000}} }
func servesWidgets(c *core.Cluster) {
	c.APIs = core.NewAPIs(deployments, widgets)
}

func named(names ...string) core.Placement {
	return core.Placement{Terms: []core.Term{{Affinity: core.Affinity{Names: names}}}}
}

func selecting(t *testing.T, text string) core.Placement {
	selector, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return core.Placement{Terms: []core.Term{{Affinity: core.Affinity{Labels: selector}}}}
}

func TestConcernedBy(t *testing.T) {
	index := NewIndex()
	set := func(name string, i Interest) {
		if i.Kind.Empty() {
			i.Kind = deployments
		}
		index.Set(types.NamespacedName{Name: name}, i)
	}
	set("anywhere", Interest{Fingerprint: "any"})
	set("named", Interest{Fingerprint: "named", Placement: named("m1")})
	set("elsewhere", Interest{Fingerprint: "elsewhere", Placement: named("m2"), Clusters: []string{"m2"}})
	set("selected", Interest{Fingerprint: "selected", Placement: selecting(t, "zone=a")})
	set("settled", Interest{Fingerprint: "any", Settled: true, Clusters: []string{"m1"}})
	set("settled-elsewhere", Interest{Fingerprint: "any", Settled: true, Clusters: []string{"m2"}})
	set("waiting", Interest{Fingerprint: "any", Settled: true, Waiting: true})
	set("waiting-elsewhere", Interest{Fingerprint: "elsewhere", Placement: named("m2"), Waiting: true})
	set("widget", Interest{Fingerprint: "any", Kind: widgets})
	for name, c := range map[string]struct {
		before, after *core.Cluster
		want          string
	}{
		"nothing changed":   {cluster("m1"), cluster("m1"), ""},
		"new":               {nil, cluster("m1"), "anywhere named settled waiting widget"},
		"gone":              {cluster("m1"), nil, "anywhere named settled waiting widget"},
		"taint":             {cluster("m1"), cluster("m1", tainted), "anywhere named settled waiting"},
		"label gained":      {cluster("m1"), cluster("m1", labelled("a")), "anywhere named selected settled waiting"},
		"label lost":        {cluster("m1", labelled("a")), cluster("m1"), "anywhere named selected settled waiting"},
		"another label":     {cluster("m1"), cluster("m1", labelled("b")), "anywhere named settled waiting"},
		"room":              {cluster("m1"), cluster("m1", roomier), "waiting"},
		"API":               {cluster("m1"), cluster("m1", servesWidgets), "settled widget"},
		"unknown cluster":   {cluster("m9"), cluster("m9", tainted), "anywhere waiting"},
		"room of the other": {cluster("m2"), cluster("m2", roomier), "waiting waiting-elsewhere"},
		"taint of the other": {
			cluster("m2"), cluster("m2", tainted), "anywhere elsewhere settled-elsewhere waiting waiting-elsewhere",
		},
		"known to be away": {
			newcomer("m1"), cluster("m1", func(c *core.Cluster) { c.APIs = nil }),
			"anywhere named settled waiting widget",
		},
		"known to be ready":   {newcomer("m1"), cluster("m1"), "anywhere named settled waiting widget"},
		"nothing in any form": {nil, nil, ""},
	} {
		var names []string
		for _, key := range index.ConcernedBy(c.before, c.after) {
			names = append(names, key.Name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: %q is concerned, want %q", name, got, c.want)
		}
	}
}

func TestIndexForgets(t *testing.T) {
	index := NewIndex()
	key := types.NamespacedName{Namespace: "ns", Name: "b"}
	index.Set(key, Interest{Kind: deployments, Fingerprint: "any", Clusters: []string{"m1"}, Waiting: true})
	if got := index.PlacedOn("m1"); !slices.Equal(got, []types.NamespacedName{key}) {
		t.Fatalf("placed on m1: %v", got)
	}
	if got := index.OfKind(deployments); !slices.Equal(got, []types.NamespacedName{key}) {
		t.Fatalf("of the kind: %v", got)
	}
	index.Set(key, Interest{Kind: widgets, Fingerprint: "other", Clusters: []string{"m2"}})
	if len(index.PlacedOn("m1")) > 0 || len(index.OfKind(deployments)) > 0 || len(index.groups) != 1 {
		t.Fatal("the index still knows the old interest")
	}
	index.Remove(key)
	if len(index.bindings)+len(index.placed)+len(index.groups)+len(index.kinds) > 0 {
		t.Fatalf("something is left of a removed binding: %+v", index)
	}
}

func BenchmarkConcernedBy(b *testing.B) {
	index := NewIndex()
	for i := range 10000 {
		index.Set(types.NamespacedName{Name: strings.Repeat("x", i%50), Namespace: string(rune(i))},
			Interest{Kind: deployments, Fingerprint: "named", Placement: named("m1")})
	}
	before, after := cluster("m2"), cluster("m2", tainted)
	for b.Loop() {
		index.ConcernedBy(before, after)
	}
}
