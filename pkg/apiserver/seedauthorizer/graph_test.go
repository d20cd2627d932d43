package seedauthorizer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

func to(from, to Vertex) Edge { return Edge{From: from, To: to} }

func seedVertex(name string) Vertex { return Vertex{Kind: kindAgent, Name: name} }

func TestReachability(t *testing.T) {
	var (
		shoot   = Vertex{kindShoot, "garden-a", "s"}
		other   = Vertex{kindShoot, "garden-a", "o"}
		binding = Vertex{kindCredentialsBinding, "garden-a", "b"}
		secret  = Vertex{kindSecret, "garden-x", "c"}
	)
	g := NewGraph()
	expect := func(step string, want map[string]bool) {
		t.Helper()
		for name, reached := range want {
			if got := g.Reaches(secret, name); got != reached {
				t.Errorf("%s: secret reaches %s = %v, want %v", step, name, got, reached)
			}
		}
	}
	g.Set(binding, []Edge{to(secret, binding)})
	expect("a binding that nobody uses", map[string]bool{"one": false, "two": false})

	g.Set(shoot, []Edge{to(shoot, seedVertex("one")), to(binding, shoot)})
	expect("used by a shoot on one", map[string]bool{"one": true, "two": false})

	g.Set(other, []Edge{to(other, seedVertex("two")), to(binding, other)})
	expect("used by another on two", map[string]bool{"one": true, "two": true})

	g.Set(shoot, []Edge{to(shoot, seedVertex("one")), to(shoot, seedVertex("two")), to(binding, shoot)})
	expect("the first is moving", map[string]bool{"one": true, "two": true})

	g.Set(shoot, []Edge{to(shoot, seedVertex("two")), to(binding, shoot)})
	expect("the first has moved", map[string]bool{"one": false, "two": true})

	g.Set(other, nil)
	expect("the other is gone", map[string]bool{"one": false, "two": true})

	g.Replace(kindShoot, nil)
	expect("all shoots are gone", map[string]bool{"one": false, "two": false})

	g.Set(binding, nil)
	if vertices, edges := g.Size(); vertices != 0 || edges != 0 {
		t.Errorf("%d vertices and %d edges are left of nothing", vertices, edges)
	}
}

// TestAgainstSearch compares what is counted with what a search finds, after every one of many random changes.
func TestAgainstSearch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	g, stated := NewGraph(), map[Vertex][]Edge{}
	vertex := func(kind Kind) Vertex { return Vertex{kind, "", fmt.Sprint(random.IntN(4))} }
	for range 3000 {
		object := vertex(kindSecret + Kind(random.IntN(int(kindAgent-kindSecret))))
		var edges []Edge
		for range random.IntN(4) {
			edges = append(edges, to(object, vertex(object.Kind+1+Kind(random.IntN(int(kindAgent-object.Kind))))))
			edges = append(edges, to(vertex(kindQuota+Kind(random.IntN(int(object.Kind-kindQuota)))), object))
		}
		g.Set(object, edges)
		stated[object] = edges
		compare(t, g, stated)
		if t.Failed() {
			return
		}
	}
	for object := range stated {
		g.Set(object, nil)
	}
	if vertices, edges := g.Size(); vertices != 0 || edges != 0 {
		t.Errorf("%d vertices and %d edges are left of nothing", vertices, edges)
	}
}

func compare(t *testing.T, g *Graph, stated map[Vertex][]Edge) {
	t.Helper()
	next := map[Vertex][]Vertex{}
	for _, edges := range stated {
		for _, edge := range edges {
			next[edge.From] = append(next[edge.From], edge.To)
		}
	}
	for from := range next {
		for number := range 4 {
			name := fmt.Sprint(number)
			if got, want := g.Reaches(from, name), search(next, from, seedVertex(name)); got != want {
				t.Errorf("%v reaches %s = %v, want %v", from, name, got, want)
			}
		}
	}
}

func search(next map[Vertex][]Vertex, from, goal Vertex) bool {
	return from == goal || slices.ContainsFunc(next[from], func(v Vertex) bool { return search(next, v, goal) })
}

func TestConcurrentUse(t *testing.T) {
	g := NewGraph()
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			object := Vertex{kindShoot, "garden-a", fmt.Sprint(worker)}
			for i := range 500 {
				g.Set(object, []Edge{
					to(object, seedVertex(fmt.Sprint(i%3))), to(Vertex{Kind: kindNamespace, Name: "garden-a"}, object),
				})
				if !g.Reaches(object, fmt.Sprint(i%3)) {
					t.Errorf("what was just stated is not known")
				}
			}
			g.Set(object, nil)
		})
	}
	group.Wait()
	if len(slices.Collect(maps.Keys(g.nodes))) != 0 {
		t.Error("vertices are left of nothing")
	}
}
