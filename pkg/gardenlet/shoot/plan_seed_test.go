package shoot

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestPlanSeed(t *testing.T) {
	size := resource.MustParse("20Gi")
	for name, test := range map[string]struct {
		spec gardencorev1beta1.SeedSpec
		want SeedPlan
	}{
		"nothing": {gardencorev1beta1.SeedSpec{}, SeedPlan{}},
		"off":     {gardencorev1beta1.SeedSpec{Settings: &gardencorev1beta1.SeedSettings{TopologyAwareRouting: &gardencorev1beta1.SeedSettingTopologyAwareRouting{}}}, SeedPlan{}},
		"everything": {gardencorev1beta1.SeedSpec{
			Volume:   &gardencorev1beta1.SeedVolume{MinimumSize: ptr.To(size)},
			Settings: &gardencorev1beta1.SeedSettings{TopologyAwareRouting: &gardencorev1beta1.SeedSettingTopologyAwareRouting{Enabled: true}},
		}, SeedPlan{MinimumVolumeSize: size, TrafficDistribution: "PreferClose"}},
	} {
		if difference := cmp.Diff(test.want, planSeed(&test.spec)); difference != "" {
			t.Errorf("%s: %s", name, difference)
		}
	}
}
