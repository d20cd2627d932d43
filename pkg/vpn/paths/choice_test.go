package paths

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// observation of a path, and what follows.
type observation struct {
	path     int
	answered bool
	current  int
	left     []int
}

func TestChoice(t *testing.T) {
	for name, observations := range map[string][]observation{
		"the first that answers is taken": {{1, true, 1, nil}, {0, true, 1, nil}},
		"one lost packet moves nobody": {
			{0, true, 0, nil}, {1, true, 0, nil}, {0, false, 0, nil}, {0, true, 0, nil}, {0, false, 0, nil},
		},
		"one that is silent is left": {
			{0, true, 0, nil}, {1, true, 0, nil}, {0, false, 0, nil}, {0, false, 1, []int{0}},
		},
		"one that comes back moves nobody": {
			{0, true, 0, nil}, {1, true, 0, nil}, {0, false, 0, nil}, {0, false, 1, []int{0}}, {0, true, 1, nil},
		},
		"while none lives, none is left": {
			{0, true, 0, nil}, {1, true, 0, nil}, {0, false, 0, nil}, {1, false, 0, nil}, {0, false, 1, []int{0}},
			{1, false, 1, nil}, {1, true, 1, []int{0}},
		},
		"the other one fails": {
			{0, true, 0, nil}, {1, true, 0, nil}, {1, false, 0, nil}, {1, false, 0, []int{1}}, {1, true, 0, nil},
		},
	} {
		c := newChoice(2, 2)
		for i, o := range observations {
			c.observe(o.path, o.answered)
			var left []int
			for path := range c.paths {
				if c.isLeft(path) {
					left = append(left, path)
				}
			}
			if c.current != o.current || !slices.Equal(left, o.left) {
				t.Errorf("%s: after %d: current %d, left %v; want %d, %v", name, i, c.current, left, o.current, o.left)
			}
		}
	}
}

// Whatever happens, connections take a path that lives if there is one, never one that was left, and each path once.
func TestOrderOfPaths(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	c := newChoice(3, 2)
	for range 10_000 {
		c.observe(random.IntN(3), random.IntN(3) > 0)
		order := c.order()
		oneLives := slices.ContainsFunc(c.paths, func(s state) bool { return s.lives })
		if oneLives && !c.paths[order[0]].lives || slices.ContainsFunc(order, c.isLeft) ||
			len(slices.Compact(slices.Sorted(slices.Values(order)))) != len(order) {
			t.Fatalf("%+v: the order is %v", c, order)
		}
		for path := range c.paths {
			if !slices.Contains(order, path) && !c.isLeft(path) {
				t.Fatalf("%+v: path %d is not in %v", c, path, order)
			}
		}
	}
}
