package plan

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestDNSReplicas(t *testing.T) {
	pool := func(maximum int32, cpu string, system bool) Pool {
		return Pool{
			Worker: gardencorev1beta1.Worker{
				Maximum: maximum, SystemComponents: &gardencorev1beta1.WorkerSystemComponents{Allow: system},
			},
			MachineType: &gardencorev1beta1.MachineType{CPU: resource.MustParse(cpu)},
		}
	}
	for name, test := range map[string]struct {
		pools []Pool
		want  int32
	}{
		"one node":              {[]Pool{pool(1, "2", true)}, 1},
		"few nodes":             {[]Pool{pool(3, "2", true)}, 2},
		"many nodes":            {[]Pool{pool(100, "2", true)}, 7},
		"many cores":            {[]Pool{pool(20, "64", true)}, 5},
		"one place among many":  {[]Pool{pool(1, "2", true), pool(99, "2", false)}, 1},
		"no machine type known": {[]Pool{{Worker: gardencorev1beta1.Worker{Maximum: 40}}}, 3},
	} {
		if got := dnsReplicas(test.pools); got != test.want {
			t.Errorf("%s: %d replicas, want %d", name, got, test.want)
		}
	}
}
