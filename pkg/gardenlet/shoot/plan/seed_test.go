package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestPlanSeed(t *testing.T) {
	size := resource.MustParse("20Gi")
	for name, test := range map[string]struct {
		spec gardencorev1beta1.SeedSpec
		want Seed
	}{
		"nothing": {gardencorev1beta1.SeedSpec{}, Seed{}},
		"off": {
			gardencorev1beta1.SeedSpec{
				Settings: &gardencorev1beta1.SeedSettings{
					TopologyAwareRouting: &gardencorev1beta1.SeedSettingTopologyAwareRouting{},
				},
			}, Seed{},
		},
		"everything": {gardencorev1beta1.SeedSpec{
			Volume: &gardencorev1beta1.SeedVolume{MinimumSize: new(size)},
			Settings: &gardencorev1beta1.SeedSettings{
				TopologyAwareRouting: &gardencorev1beta1.SeedSettingTopologyAwareRouting{Enabled: true},
			},
		}, Seed{MinimumVolumeSize: size, TrafficDistribution: "PreferClose"}},
	} {
		if difference := cmp.Diff(test.want, planSeed(&test.spec)); difference != "" {
			t.Errorf("%s: %s", name, difference)
		}
	}
}
