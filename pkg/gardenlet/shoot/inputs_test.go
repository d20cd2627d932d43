package shoot

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
)

func TestETCDBackup(t *testing.T) {
	got := etcdBackup(config.ETCDConfig{
		DeltaSnapshotPeriod: &metav1.Duration{Duration: 1}, MaxBackupsLimitBasedGC: 2,
		FullSnapshotRetentionPeriod: metav1.Duration{Duration: 3}, VerificationPeriod: &metav1.Duration{Duration: 4},
	})
	want := component.ETCDBackup{
		DeltaSnapshotPeriod: 1, FullSnapshots: 2, FullSnapshotAge: 3, VerificationPeriod: 4,
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
