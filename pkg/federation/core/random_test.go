package core

import (
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// cases is how many random cases a property is tried with: usual, or as many times more as TRELLIS_PROPERTY_FACTOR
// says.
func cases(t *testing.T, usual int) int {
	t.Helper()
	if testing.Short() {
		return usual / 10
	}
	factor := os.Getenv("TRELLIS_PROPERTY_FACTOR")
	if factor == "" {
		return usual
	}
	n, err := strconv.Atoi(factor)
	if err != nil {
		t.Fatalf("TRELLIS_PROPERTY_FACTOR: %v", err)
	}
	return usual * n
}

// chooser is where the choices of a random case come from: a seeded generator, or the bytes of a fuzzer.
type chooser interface {
	// Intn is between 0 and n−1.
	Intn(n int) int
}

// bytesChooser takes two bytes for each choice, and 0 when there are none left.
type bytesChooser struct{ data []byte }

func (c *bytesChooser) Intn(n int) int {
	if len(c.data) < 2 {
		return 0
	}
	value := int(c.data[0]) | int(c.data[1])<<8
	c.data = c.data[2:]
	return value % n
}

// oneIn is true once in n times.
func oneIn(c chooser, n int) bool { return c.Intn(n) == 0 }

// randomCase is a snapshot's clusters and a binding. Numbers are small, so that ties and lacks are frequent.
func randomCase(c chooser) ([]Cluster, Binding) {
	clusters := make([]Cluster, c.Intn(10))
	if oneIn(c, 20) {
		clusters = make([]Cluster, c.Intn(40))
	}
	for i := range clusters {
		clusters[i] = randomCluster(c, clusterName(i))
	}
	return clusters, randomBinding(c, len(clusters))
}

func clusterName(i int) string { return "m" + string(rune('a'+i/10)) + string(rune('0'+i%10)) }

func randomCluster(c chooser, name string) Cluster {
	cluster := Cluster{Name: name, Labels: labels.Set{"tier": oneOf(c, "gold", "iron")}, Deleting: oneIn(c, 30)}
	if !oneIn(c, 15) {
		cluster.APIs = NewAPIs(deployment)
	}
	if !oneIn(c, 12) {
		cluster.Region = fmt.Sprint("r", c.Intn(5))
	}
	if !oneIn(c, 12) {
		cluster.Provider = fmt.Sprint("p", c.Intn(3))
	}
	for i := range c.Intn(3) {
		cluster.Zones = append(cluster.Zones, fmt.Sprint("z", i+c.Intn(2)))
	}
	slices.Sort(cluster.Zones)
	cluster.Zones = slices.Compact(cluster.Zones)
	if oneIn(c, 8) {
		cluster.Taints = []corev1.Taint{
			{
				Key: "down", Effect: oneOf(c, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute,
					corev1.TaintEffectPreferNoSchedule),
			},
		}
	}
	if !oneIn(c, 12) {
		cluster.Room = (&summary{
			Allocatable: Resources{Pods: int64(c.Intn(25)), CPU: int64(c.Intn(20000))},
			Allocated:   Resources{Pods: int64(c.Intn(6))},
			Allocating:  Resources{CPU: int64(c.Intn(1000))},
		}).room()
	}
	return cluster
}

func oneOf[T any](c chooser, values ...T) T { return values[c.Intn(len(values))] }

func randomBinding(c chooser, clusters int) Binding {
	b := Binding{Kind: deployment, Workload: !oneIn(c, 12), Fresh: oneIn(c, 6), UID: oneOf(c, "", oddUID, evenUID)}
	if b.Workload {
		b.Replicas = int32(c.Intn(30))
	}
	if oneIn(c, 3) {
		b.Request = Resources{CPU: int64(c.Intn(3) * 500)}
	}
	b.Placement = Placement{
		Strategy: oneOf(c, Duplicated, StaticWeight, DynamicWeight, Aggregated, Even),
		Terms:    randomTerms(c, clusters),
		Spread:   randomSpread(c),
	}
	if oneIn(c, 4) {
		b.Placement.Tolerations = []corev1.Toleration{{Key: "down", Operator: corev1.TolerationOpExists}}
	}
	if oneIn(c, 10) {
		b.SetOf(randomComponents(c))
		b.Placement.Spread = append(slices.DeleteFunc(b.Placement.Spread,
			func(s SpreadConstraint) bool { return s.Field == FieldCluster }), spreadOver(FieldCluster, 1, 1))
	}
	if b.Placement.Strategy == StaticWeight {
		for i := range c.Intn(4) {
			b.Placement.Weights = append(b.Placement.Weights,
				Weight{Affinity: randomAffinity(c, clusters, fmt.Sprint("weight", i)), Weight: int64(c.Intn(5) + 1)})
		}
	}
	for i := range c.Intn(6) - 3 {
		least := int32(c.Intn(3))
		most := least + int32(1+c.Intn(8))
		b.Placement.Limits = append(b.Placement.Limits,
			Limit{Affinity: randomAffinity(c, clusters, fmt.Sprint("limit", i)), Min: least, Max: &most})
	}
	for i := range clusters + 1 {
		if oneIn(c, 4) {
			b.Previous = append(b.Previous, Target{Cluster: clusterName(i), Replicas: int32(c.Intn(9))})
		}
		if oneIn(c, 25) {
			b.Evicted = append(b.Evicted, clusterName(i))
		}
	}
	if len(b.Placement.Terms) > 0 && oneIn(c, 2) {
		b.PreviousTerm = b.Placement.Terms[c.Intn(len(b.Placement.Terms))].Name
	}
	return b
}

func randomComponents(c chooser) []Component {
	components := make([]Component, 1+c.Intn(3))
	for i := range components {
		components[i] = Component{
			Name: fmt.Sprint("part", i), Replicas: int32(c.Intn(4)), Request: Resources{CPU: int64(c.Intn(4) * 500)},
		}
	}
	return components
}

func randomTerms(c chooser, clusters int) []Term {
	if oneIn(c, 2) {
		return nil
	}
	var terms []Term
	for i := range 1 + c.Intn(3) {
		name := fmt.Sprint("term", i)
		terms = append(terms, Term{Name: name, Affinity: randomAffinity(c, clusters, name)})
	}
	return terms
}

func randomAffinity(c chooser, clusters int, path string) Affinity {
	a := Affinity{Path: path}
	switch c.Intn(5) {
	case 0:
		a.Labels = labels.Set{"tier": oneOf(c, "gold", "iron")}.AsSelector()
	case 1:
		for i := range clusters + 1 {
			if !oneIn(c, 3) {
				a.Names = append(a.Names, clusterName(i))
			}
		}
	case 2:
		a.Exclude = []string{clusterName(c.Intn(clusters + 1))}
	case 3:
		a.Fields = []FieldRequirement{
			{Field: FieldRegion, Not: oneIn(c, 2), Values: []string{fmt.Sprint("r", c.Intn(5))}},
		}
	}
	return a
}

func randomSpread(c chooser) []SpreadConstraint {
	bound := func(field Field, largest int) SpreadConstraint {
		least := 1 + c.Intn(largest)
		constraint := spreadOver(field, least, least+c.Intn(3))
		if oneIn(c, 6) {
			constraint.Max = nil
		}
		return constraint
	}
	switch c.Intn(6) {
	case 0:
		return []SpreadConstraint{bound(FieldCluster, 4)}
	case 1:
		return []SpreadConstraint{bound(FieldRegion, 3), bound(FieldCluster, 6)}
	case 2:
		return []SpreadConstraint{bound(FieldCluster, 5), bound(FieldProvider, 2)}
	}
	return nil
}

// shuffled puts in another order what has none: the clusters, the previous targets, the evicted ones, and names within
// affinities.
func shuffled(r *rand.Rand, clusters []Cluster, b Binding) ([]Cluster, Binding) {
	clusters, b.Previous, b.Evicted = mixed(r, clusters), mixed(r, b.Previous), mixed(r, b.Evicted)
	b.Placement.Weights = mixed(r, b.Placement.Weights)
	for i := range b.Placement.Weights {
		b.Placement.Weights[i].Names = mixed(r, b.Placement.Weights[i].Names)
	}
	b.Placement.Terms = slices.Clone(b.Placement.Terms)
	for i := range b.Placement.Terms {
		b.Placement.Terms[i].Names = mixed(r, b.Placement.Terms[i].Names)
	}
	return clusters, b
}

func mixed[T any](r *rand.Rand, list []T) []T {
	list = slices.Clone(list)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}
