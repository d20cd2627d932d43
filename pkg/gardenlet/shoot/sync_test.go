package shoot

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
)

func TestUntilSync(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	window := func(begin, end string) *gardencorev1beta1.Maintenance {
		return &gardencorev1beta1.Maintenance{
			ConfineSpecUpdateRollout: new(true),
			TimeWindow:               &gardencorev1beta1.MaintenanceTimeWindow{Begin: begin, End: end},
		}
	}
	unconfined := window("220000+0000", "230000+0000")
	unconfined.ConfineSpecUpdateRollout = nil
	for _, test := range []struct {
		name        string
		ago         time.Duration
		state       gardencorev1beta1.LastOperationState
		version     string
		maintenance *gardencorev1beta1.Maintenance
		want        time.Duration
	}{
		{"settled a moment ago", 10 * time.Minute, "Succeeded", "v1", nil, 50 * time.Minute},
		{"settled long ago", 2 * time.Hour, "Succeeded", "v1", nil, 0},
		{"not settled", 10 * time.Minute, "Error", "v1", window("220000+0000", "230000+0000"), 0},
		{"by another gardenlet", 10 * time.Minute, "Succeeded", "v0", nil, 0},
		{"changes are not confined", 2 * time.Hour, "Succeeded", "v1", unconfined, 0},
		{"before the window", 2 * time.Hour, "Succeeded", "v1", window("220000+0000", "230000+0000"), 10 * time.Hour},
		{"after the window", 2 * time.Hour, "Succeeded", "v1", window("100000+0000", "110000+0000"), 22 * time.Hour},
		{
			"another gardenlet, before the window", 2 * time.Hour, "Succeeded", "v0",
			window("130000+0000", "140000+0000"), time.Hour,
		},
		{"in the window", 2 * time.Hour, "Succeeded", "v1", window("113000+0000", "123000+0000"), 0},
		{
			"in the window, settled a moment ago", 10 * time.Minute, "Succeeded", "v1",
			window("113000+0000", "123000+0000"), 50 * time.Minute,
		},
		{"in a window over midnight", 2 * time.Hour, "Succeeded", "v1", window("110000+0000", "010000+0000"), 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &Reconciler{Identity: gardencorev1beta1.Gardener{Version: "v1"}, Config: &config.Configuration{}}
			r.Config.Controllers.Shoot.SyncPeriod = &metav1.Duration{Duration: time.Hour}
			shoot := &gardencorev1beta1.Shoot{Spec: gardencorev1beta1.ShootSpec{Maintenance: test.maintenance}}
			shoot.Status.Gardener.Version = test.version
			shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{
				State: test.state, LastUpdateTime: metav1.NewTime(noon.Add(-test.ago)),
			}
			if got := r.untilSync(shoot, noon); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
