package coredns

import (
	"testing"

	"github.com/trellis-garden/trellis/pkg/component"
)

func TestReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		most component.PoolSizes
		want int32
	}{
		"one node":              {component.PoolSizes{Nodes: 1, Cores: 2, SystemNodes: 1}, 1},
		"few nodes":             {component.PoolSizes{Nodes: 3, Cores: 6, SystemNodes: 3}, 2},
		"many nodes":            {component.PoolSizes{Nodes: 100, Cores: 200, SystemNodes: 100}, 7},
		"many cores":            {component.PoolSizes{Nodes: 20, Cores: 1280, SystemNodes: 20}, 5},
		"one place among many":  {component.PoolSizes{Nodes: 100, Cores: 200, SystemNodes: 1}, 1},
		"no machine type known": {component.PoolSizes{Nodes: 40, SystemNodes: 40}, 3},
	} {
		if got := replicas(test.most); got != test.want {
			t.Errorf("%s: %d replicas, want %d", name, got, test.want)
		}
	}
}
