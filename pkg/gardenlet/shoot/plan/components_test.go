package plan

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
)

func TestSizesOfPools(t *testing.T) {
	pool := func(maximum int32, cpu string, system bool) Pool {
		return Pool{
			Worker: gardencorev1beta1.Worker{
				Maximum: maximum, SystemComponents: &gardencorev1beta1.WorkerSystemComponents{Allow: system},
			},
			MachineType: &gardencorev1beta1.MachineType{CPU: resource.MustParse(cpu)},
		}
	}
	unknown := Pool{Worker: gardencorev1beta1.Worker{Maximum: 40}}
	want := component.PoolSizes{Nodes: 143, Cores: 1*2 + 102*4, SystemNodes: 41}
	if got := sizes([]Pool{pool(1, "2", true), pool(102, "4", false), unknown}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
